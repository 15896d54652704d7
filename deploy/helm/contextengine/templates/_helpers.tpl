{{- define "contextengine.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "contextengine.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "contextengine.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "contextengine.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "contextengine.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "contextengine.name" .) }}
{{- end }}

{{/* What every container of the chart may do: nothing but run. */}}
{{- define "contextengine.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "contextengine.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "contextengine.storeUrl" -}}
- name: CONTEXTENGINE_STORE__URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.secret.name }}
      key: {{ .Values.store.secret.key }}
{{- end }}

{{/* One answer of grpc.health.v1. Kubernetes asks it itself, but speaks no TLS. */}}
{{- define "contextengine.probe" -}}
{{- $root := .root -}}
{{- if $root.Values.tls.enabled -}}
exec:
  command:
    - contextengine
    - health
    - --address=127.0.0.1:{{ $root.Values.port }}
    - --ca=/etc/contextengine/tls/ca.crt
    - --server-name={{ $root.Values.tls.serverName | default (printf "%s.%s.svc" (include "contextengine.name" $root) $root.Release.Namespace) }}
    {{- if $root.Values.tls.clients.caSecretName }}
    - --cert=/etc/contextengine/probe/tls.crt
    - --key=/etc/contextengine/probe/tls.key
    {{- end }}
    {{- with .service }}
    - --service={{ . }}
    {{- end }}
    - --timeout=8
{{- else -}}
grpc:
  port: {{ $root.Values.port }}
  {{- with .service }}
  service: {{ . }}
  {{- end }}
{{- end }}
timeoutSeconds: 10
periodSeconds: 10
{{- end }}

{{/* What cannot be right together, told before anything is installed. */}}
{{- define "contextengine.check" -}}
{{- $settings := .Values.settings -}}
{{- range $path, $instead := dict
  "store.url" "its password belongs into the Secret that store.secret names"
  "auth.tokens" "they belong into the Secret that auth.tokens.secret names"
  "server.address" "set port"
  "server.tls" "set tls"
  "server.insecure" "set insecure"
  "telemetry.metrics.prometheus" "set metrics"
-}}
  {{- $at := $settings -}}
  {{- range $name := splitList "." $path -}}
    {{- if kindIs "map" $at -}}{{- $at = get $at $name -}}{{- else -}}{{- $at = "" -}}{{- end -}}
  {{- end -}}
  {{- if not (kindIs "string" $at | and (eq (toString $at) "")) -}}
    {{- fail (printf "settings.%s: not here: %s" $path $instead) -}}
  {{- end -}}
{{- end -}}
{{- $known := or .Values.auth.tokens.secret.name (dig "auth" "jwt" "" $settings) (dig "auth" "certificates" "" $settings) -}}
{{- if not (or .Values.insecure (and .Values.tls.enabled $known)) -}}
  {{- fail "callers need TLS and credentials: set tls.enabled and auth.tokens.secret.name (or settings.auth.jwt or .certificates), or insecure: true where a mesh decides who may call" -}}
{{- end -}}
{{- if and .Values.tls.clients.caSecretName (not .Values.tls.enabled) -}}
  {{- fail "tls.clients.caSecretName: clients show certificates over TLS alone: set tls.enabled" -}}
{{- end -}}
{{- if and .Values.tls.clients.caSecretName (not .Values.tls.clients.probeSecretName) -}}
  {{- fail "tls.clients.probeSecretName: where clients must show a certificate the probes need one too" -}}
{{- end -}}
{{- if and .Values.metrics.enabled (eq (int .Values.metrics.port) (int .Values.port)) -}}
  {{- fail "metrics.port: is the port of the service: take another" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
  {{- fail "autoscaling.minReplicas: is above maxReplicas" -}}
{{- end -}}
{{- end }}
