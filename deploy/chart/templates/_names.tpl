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

{{/* own: each pod has a disk, and is a StatefulSet's. */}}
{{- define "tollgate.disks" -}}
{{- if or (eq .Values.store.kind "sqlite") .Values.store.disks }}own{{ else }}none{{ end -}}
{{- end -}}

{{/* What cannot be, in words. */}}
{{- define "tollgate.check" -}}
{{- if and (eq .Values.store.kind "sqlite") (gt (int .Values.replicas) 1) -}}
{{- fail "store.kind is sqlite: one file has one gateway, so replicas is 1. For more of them say store.kind: postgres, and give existingSecret a key database-url." -}}
{{- end -}}
{{- if and (eq .Values.store.kind "sqlite") .Values.autoscaling.enabled -}}
{{- fail "store.kind is sqlite: one file has one gateway, so autoscaling.enabled is false. For more of them say store.kind: postgres." -}}
{{- end -}}
{{- if and (eq .Values.store.kind "postgres") (not .Values.existingSecret) -}}
{{- fail "store.kind is postgres: existingSecret names the Secret with the key database-url." -}}
{{- end -}}
{{- if and .Values.admin.enabled (not .Values.existingSecret) -}}
{{- fail "admin.enabled: other machines reach the admin port, so it has an owner. existingSecret names the Secret with the key admin, 24 characters or more." -}}
{{- end -}}
{{- if and .Values.monitoring.enabled (not (and .Values.admin.enabled .Values.existingSecret)) -}}
{{- fail "monitoring.enabled: Prometheus reads the admin port with a token. admin.enabled is true, and existingSecret names the Secret with the key scraper." -}}
{{- end -}}
{{- end -}}

{{/* gateway.yaml: what the chart says, and what the values say over it. */}}
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
