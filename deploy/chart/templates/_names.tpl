{{- define "tollgate.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "tollgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "tollgate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tollgate.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: {{ include "tollgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tollgate.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "tollgate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "tollgate.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.configMap" -}}
{{- .Values.existingConfigMap | default (include "tollgate.fullname" .) -}}
{{- end -}}

{{/* Whether each pod has its own disk, in a StatefulSet. */}}
{{- define "tollgate.disks" -}}
{{- if or (eq .Values.store.kind "sqlite") .Values.store.disks }}own{{ else }}none{{ end -}}
{{- end -}}

{{/* Rejects invalid combinations of values with an explanation. */}}
{{- define "tollgate.check" -}}
{{- if and (eq .Values.store.kind "sqlite") (gt (int .Values.replicas) 1) -}}
{{- fail "With store.kind: sqlite, replicas must be 1, because one gateway owns the file. For more replicas, set store.kind: postgres and add the key database-url to existingSecret." -}}
{{- end -}}
{{- if and (eq .Values.store.kind "sqlite") .Values.autoscaling.enabled -}}
{{- fail "With store.kind: sqlite, autoscaling.enabled must be false, because one gateway owns the file. For more replicas, set store.kind: postgres." -}}
{{- end -}}
{{- if and (eq .Values.store.kind "postgres") (not .Values.existingSecret) -}}
{{- fail "With store.kind: postgres, existingSecret must name a Secret with the key database-url." -}}
{{- end -}}
{{- if and .Values.admin.enabled (not .Values.existingSecret) -}}
{{- fail "With admin.enabled, existingSecret must name a Secret with the key admin, an owner's token of at least 24 characters, because other machines can reach the admin port." -}}
{{- end -}}
{{- if and .Values.monitoring.enabled (not (and .Values.admin.enabled .Values.existingSecret)) -}}
{{- fail "With monitoring.enabled, admin.enabled must be true, and existingSecret must name a Secret with the key scraper, because Prometheus reads the admin port with a token." -}}
{{- end -}}
{{- end -}}

{{/* gateway.yaml: the chart's settings, overridden by the values. */}}
{{- define "tollgate.config" -}}
{{- $own := dict "listen" (dict "host" "0.0.0.0" "port" 8787) "state_dir" "/var/lib/tollgate" -}}
{{- if .Values.admin.enabled -}}
{{- $admin := dict "host" "0.0.0.0" "port" 9787 "behind_proxy" true "hosts" (list (printf "%s-admin" (include "tollgate.fullname" .)) (printf "%s-admin.%s.svc" (include "tollgate.fullname" .) .Release.Namespace)) -}}
{{- $tokens := dict "owner" (dict "role" "owner" "token" "${credential:admin}") -}}
{{- if .Values.monitoring.enabled -}}
{{- $_ := set $tokens "prometheus" (dict "role" "metrics" "token" "${credential:scraper}") -}}
{{- end -}}
{{- $_ := set $admin "tokens" $tokens -}}
{{- $_ := set $own "admin" $admin -}}
{{- end -}}
{{- if eq .Values.store.kind "postgres" -}}
{{- $_ := set $own "store" (dict "use" "postgres" "with" (dict "url" "${credential:database-url}")) -}}
{{- end -}}
{{- toYaml (merge (deepCopy .Values.config) $own) -}}
{{- end -}}
