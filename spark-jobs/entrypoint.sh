#!/bin/sh
# How a pod starts a job. A CronJob gives the arguments of the job. Spark's operator gives
#   driver --properties-file FILE --class … local:///opt/ibrik/jobs.py ARGUMENTS
# of which those after the file are the job's: it plans in Python, and starts Spark itself where there
# is enough to do; with the settings of FILE when these name a master that is not the pod itself. No
# file of that name has to be there. A driver with such a master makes pods that get `executor`.
set -eu
if [ "${1:-}" = executor ]; then
    # Spark puts each option for the JVM into a variable of its own.
    set --
    number=0
    while eval "option=\${SPARK_JAVA_OPT_$number:-}" && [ -n "$option" ]; do
        set -- "$@" "$option"
        number=$((number + 1))
    done
    exec java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "$SPARK_HOME/jars/*" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
fi
if [ "${1:-}" = driver ]; then
    properties=
    while [ "$#" -gt 0 ]; do
        case "$1" in
            --properties-file) properties=${2:-} ;;
            */jobs.py) break ;;
        esac
        shift
    done
    if [ "$#" -eq 0 ]; then
        echo "error: no argument ends with /jobs.py: set mainApplicationFile to local:///opt/ibrik/jobs.py" >&2
        exit 64
    fi
    shift
    if grep -qs '^spark.master=k8s' "$properties"; then
        export PYSPARK_SUBMIT_ARGS="--deploy-mode client --properties-file $properties \
--conf spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS:-0.0.0.0} pyspark-shell"
    fi
fi
# Spark's operator mounts settings there that are of its own release and not of this image's.
unset SPARK_CONF_DIR
exec python -m ibrik_spark "$@"
