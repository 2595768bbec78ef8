// Schema of the grants that gateway.yaml can give to a client, shared by all middleware that
// identify clients.

const nameListOption = (description: string) =>
  ({ type: "array", items: { type: "string", minLength: 1 }, description }) as const;

export const GRANT_OPTIONS = {
  models: nameListOption("Allowed models. A * matches any text. Default: all"),
  frontends: nameListOption("Allowed frontends. Default: all"),
  tools: nameListOption("Allowed tools, as <server>/<tool>. A * matches any text. Default: all"),
  privacy: {
    enum: ["off", "required", "strict"],
    description: "Minimum privacy of the requests",
  },
  account: {
    type: "string",
    minLength: 1,
    "x-account": true,
    description: "Account that the key is charged to, by its name under accounts",
  },
} as const;

export const LABELS_OPTION = {
  type: "object",
  additionalProperties: { type: "string" },
  description: "Labels that are stored with every ledger row",
} as const;
