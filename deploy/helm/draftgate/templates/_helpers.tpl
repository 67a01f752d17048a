{{- define "draftgate.labels" -}}
app.kubernetes.io/name: draftgate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
{{- define "draftgate.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
automountServiceAccountToken: false
{{- if .Values.image.pullSecrets }}
imagePullSecrets:
{{- range .Values.image.pullSecrets }}
  - name: {{ . }}
{{- end }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
{{- end -}}
{{- define "draftgate.container" -}}
{{- if .Values.image.digest }}
image: {{ printf "%s@%s" .Values.image.repository .Values.image.digest | quote }}
{{- else }}
image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}
{{- end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - name: tmp
    mountPath: /tmp
{{- end -}}
{{- define "draftgate.database" -}}
- name: DRAFTGATE_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.secrets.database }}, key: database-url}
{{- if .Values.clickhouse }}
- name: DRAFTGATE_ANALYTICS_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.secrets.database }}, key: analytics-url}
{{- end }}
{{- end -}}
