{{/* The pod of the StatefulSet or the Deployment. No annotation contains a hash of the config, because the running gateway reloads changes. */}}
{{- define "tollgate.pod" -}}
metadata:
  labels:
    {{- include "tollgate.selector" . | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "tollgate.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: tollgate
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      env:
        - name: CREDENTIALS_DIRECTORY
          value: /etc/tollgate-credentials
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - { name: clients, containerPort: 8787 }
        {{- if .Values.admin.enabled }}
        - { name: admin, containerPort: 9787 }
        {{- end }}
      # During a database outage the gateway waits, and a restart would not help.
      startupProbe:
        httpGet: { path: /healthz, port: clients }
        periodSeconds: 1
        failureThreshold: 30
      readinessProbe:
        httpGet: { path: /readyz, port: clients }
        periodSeconds: 5
        failureThreshold: 1
      livenessProbe:
        httpGet: { path: /healthz, port: clients }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: state, mountPath: /var/lib/tollgate }
        # The whole directory, because a subPath is never updated.
        - { name: config, mountPath: /etc/tollgate, readOnly: true }
        - { name: tmp, mountPath: /tmp }
        {{- if .Values.existingSecret }}
        - { name: credentials, mountPath: /etc/tollgate-credentials, readOnly: true }
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumes:
    - name: config
      configMap: { name: {{ include "tollgate.configMap" . }} }
    - name: tmp
      emptyDir: {}
    {{- if .Values.existingSecret }}
    - name: credentials
      secret: { secretName: {{ .Values.existingSecret }}, defaultMode: 0440 }
    {{- end }}
    {{- if eq (include "tollgate.disks" .) "none" }}
    # Model lists, images, and rows that the database receives after a container restart.
    - name: state
      emptyDir: {}
    {{- else if and (eq .Values.store.kind "sqlite") .Values.store.existingClaim }}
    - name: state
      persistentVolumeClaim: { claimName: {{ .Values.store.existingClaim }} }
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
