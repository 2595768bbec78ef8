// Options for MCP servers of the gateway in requests to models. Both frontends have the same ones.

/** Limits of the calls that one request makes. */
export interface ModelToolOptions {
  readonly origins: readonly string[];
  readonly max_turns: number;
  readonly max_calls: number;
  readonly max_result_kb: number;
  readonly timeout_s: number;
}

export const modelToolsOption = {
  type: "object",
  additionalProperties: false,
  description:
    "Lets models call MCP servers of this gateway. Needs the frontend mcp. Default: the gateway runs no tools",
  properties: {
    origins: {
      type: "array",
      default: [],
      items: {
        type: "string",
        pattern: "^https?://[^/?#]+$",
        "x-expects": "an origin such as https://gateway.example.com",
      },
      description:
        "Origins of this gateway in URLs of servers, in addition to the host that a request was sent to",
    },
    max_turns: {
      type: "integer",
      minimum: 1,
      maximum: 100,
      default: 10,
      description: "Maximum number of calls to the model in one request",
    },
    max_calls: {
      type: "integer",
      minimum: 1,
      maximum: 1_000,
      default: 50,
      description: "Maximum number of calls to tools in one request",
    },
    max_result_kb: {
      type: "integer",
      minimum: 1,
      maximum: 16_384,
      default: 1_024,
      description: "Maximum total size of the results of tools in one request, in KiB",
    },
    timeout_s: {
      type: "integer",
      minimum: 1,
      maximum: 86_400,
      default: 600,
      description: "Maximum time of one request, in seconds",
    },
  },
} as const;
