{{- /* Names, labels and images. */ -}}

{{- define "ibrik.name" -}}
{{- if contains "ibrik" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-ibrik" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "ibrik.operator.name" -}}
{{ include "ibrik.name" . }}-operator
{{- end -}}

{{- define "ibrik.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "ibrik.operator.name" .) }}
{{- end -}}

{{- /* The lease is one per installation: whoever holds it leads. */ -}}
{{- define "ibrik.lease" -}}
{{ include "ibrik.operator.name" . }}
{{- end -}}

{{- define "ibrik.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: ibrik-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: ibrik
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* Labels that select the operator's pods; they never change, since a Deployment's cannot. */ -}}
{{- define "ibrik.operator.selector" -}}
app.kubernetes.io/name: ibrik-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- /* ibrik.image (dict "root" . "image" .Values.image.broker) */ -}}
{{- define "ibrik.image" -}}
{{- $image := .root.Values.image -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "ibrik.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What Pod Security calls restricted. */ -}}
{{- define "ibrik.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "ibrik.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Where our pods may run. */ -}}
{{- define "ibrik.placement" -}}
{{- with .Values.operator.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.operator.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
