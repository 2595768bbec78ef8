// Description of the endpoints that a client needs: `GET /protocol`.

export const protocolPage = (origin: string): string => `# Gateway protocol, version 1

Base URL: ${origin}. All paths are relative to it. Unknown parameters and headers are accepted.

## Sign-in

1. \`GET /.well-known/oauth-authorization-server\` returns the endpoints (RFC 8414).
2. \`POST /oauth/device_authorization\` returns \`device_code\`, \`user_code\`, \`verification_uri\`,
   \`verification_uri_complete\`, \`expires_in\`, and \`interval\` (RFC 8628).
3. The person opens the page, signs in, and approves the code.
4. \`POST /oauth/token\` with \`grant_type=urn:ietf:params:oauth:grant-type:device_code\` and
   \`device_code\` returns \`access_token\`, \`refresh_token\`, and \`expires_in\`. Until then, it
   returns 400 with \`authorization_pending\`, \`slow_down\`, \`access_denied\`, or \`expired_token\`.
5. \`POST /oauth/token\` with \`grant_type=refresh_token\` renews both tokens. A refresh token is used
   once. 401 with \`invalid_grant\`: sign in again. 503: retry later.
6. \`POST /oauth/revoke\` with \`token\` ends the session (RFC 7009).

Bodies are forms. Errors are \`{"error", "error_description"}\`.

## Requests

Send \`Authorization: Bearer <access token>\`. A 401 with \`x-should-retry: false\` means that the
person has to sign in again. Errors have the format of the Messages API.

| Endpoint | Content |
|---|---|
| \`POST /v1/messages\`, \`POST /v1/messages/count_tokens\` | Messages API, if the frontend \`messages\` is mounted |
| \`GET /v1/models\` | Models that the person may use, if the frontend \`models\` is mounted |
| \`GET /managed/settings\` | \`{"uuid", "checksum", "settings"}\` with an \`ETag\`. 404: no settings |
| \`POST /v1/metrics\`, \`/v1/logs\`, \`/v1/traces\` | Telemetry in OTLP over HTTP |
`;
