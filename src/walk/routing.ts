/** Names by which a body could choose where it goes, or as whom. They never leave, on either lane. */
export const ROUTING: readonly string[] = [
  "api_base",
  "api_key",
  "api_type",
  "api_version",
  "base_url",
  "custom_llm_provider",
  "extra_body",
  "extra_headers",
  "organization",
  "proxy",
];
