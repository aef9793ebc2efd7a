#!/bin/sh
# How a pod starts a job. A CronJob gives the arguments of the job. Spark's operator gives
#   driver --properties-file … --class … local:///opt/ibrik/jobs.py ARGUMENTS
# of which only those after the file are the job's: it plans in Python, and starts Spark itself where
# there is enough to do. No file of that name has to be there.
set -eu
if [ "${1:-}" = driver ]; then
    while [ "$#" -gt 0 ]; do
        case "$1" in
            */jobs.py) break ;;
        esac
        shift
    done
    if [ "$#" -eq 0 ]; then
        echo "error: no argument ends with /jobs.py: set mainApplicationFile to local:///opt/ibrik/jobs.py" >&2
        exit 64
    fi
    shift
fi
# Spark's operator mounts settings there that are of its own release and not of this image's.
unset SPARK_CONF_DIR
exec python -m ibrik_spark "$@"
