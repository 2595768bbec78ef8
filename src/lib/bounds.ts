// The bounds on all data that a client or an upstream sends, by name, with the behavior above each
// bound. The list is complete: data that is not listed has no bound. For each bound, tests send
// exactly the limit and one more (`test/pipeline/admission`), and an attack test drives a running
// daemon to the limit (`test/rig/attack`).

export interface Bound {
  readonly max: number;
  /** The thing that is counted, with its unit. */
  readonly description: string;
  /**
   * Kind and code of the error above the bound. `null`: no error is raised, and `message` describes
   * the behavior instead.
   */
  readonly error:
    | readonly [
        kind: "invalid" | "unsupported" | "too_large" | "upstream" | "overloaded" | "rate_limited",
        code: string,
      ]
    | null;
  /**
   * Message for the client, or for readers of the list: the consequence and the required action.
   * `#` is replaced by the bound.
   */
  readonly message: string;
  /** Configuration key that overrides the bound. */
  readonly configKey?: string;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const BOUNDS = {
  // Bounds on a request.
  body: {
    max: 32 * MIB,
    description: "size of a request body, in bytes",
    error: ["too_large", "request_too_large"],
    message: "The body is larger than # bytes.",
    configKey: "max_body",
  },
  jsonValues: {
    max: 100_000,
    description: "JSON values in a request body; four numbers in a list count as one",
    error: ["too_large", "too_many_values"],
    message: "The body has more than # JSON values. Send fewer messages, parts, or tools.",
    configKey: "bounds.json_values",
  },
  jsonEscapes: {
    max: 2 * MIB,
    description: "JSON escapes in a request body",
    error: ["too_large", "too_many_escapes"],
    message: "The body has more than # JSON escapes. Send text as UTF-8.",
  },
  depth: {
    max: 64,
    description: "nesting depth of a request body, in levels",
    error: ["invalid", "too_deep"],
    message: "The body is nested deeper than # levels.",
  },
  name: {
    max: 256,
    description: "length of a member name in a request body, in bytes",
    error: ["invalid", "name_too_long"],
    message: "The body has a member name longer than # bytes.",
  },
  elements: {
    max: 50_000,
    description: "elements of one list or object in a request body",
    error: ["too_large", "too_many_parts"],
    message: "The body has a list or an object with more than # elements.",
  },
  stopSequences: {
    max: 16,
    description:
      "stop sequences that the gateway applies itself, because the provider's API " +
      "supports none or fewer",
    error: ["unsupported", "too_many_stop_sequences"],
    message: "More than # stop sequences are not supported with this model. Send fewer.",
  },
  stopSequenceLength: {
    max: 256,
    description: "length of one such stop sequence, in characters",
    error: ["unsupported", "stop_sequence_too_long"],
    message:
      "Stop sequences longer than # characters are not supported with this model. " +
      "Send shorter stop sequences.",
  },
  formParts: {
    max: 64,
    description: "parts of a multipart form",
    error: ["too_large", "too_many_form_parts"],
    message: "The form has more than # parts.",
  },
  formHead: {
    max: 16 * KIB,
    description: "headers of one form part, in bytes",
    error: ["too_large", "form_head_too_large"],
    message: "A part of the form has more than # bytes of headers.",
  },
  tools: {
    max: 4_096,
    description: "tools in a request",
    error: ["too_large", "too_many_tools"],
    message: "The body has more than # tools.",
  },
  envelope: {
    // Larger than any provider's own proof.
    max: 4 * MIB,
    description: "length of one sealed signature that a client returns, in characters",
    error: null,
    message: "The signature is treated as foreign and is not opened.",
  },
  // Bounds on the schemas in a request to a model that supports only part of JSON Schema.
  schemaLevels: {
    max: 64,
    description: "nesting depth of a schema with its references resolved, in levels",
    error: ["unsupported", "unsupported_schema"],
    message: "more than # levels",
  },
  schemaParts: {
    max: 10_000,
    description: "parts of a schema with its references resolved",
    error: ["unsupported", "unsupported_schema"],
    message: "more than # parts",
  },
  schemaExpansion: {
    max: 1_000_000,
    description: "characters that references add to the schemas of one request",
    error: ["unsupported", "unsupported_schema"],
    message: "references that expand to more than # characters",
  },
  // Bounds on all requests of a process together.
  inFlight: {
    max: 256 * MIB,
    description: "bytes of requests and non-streaming responses that are buffered at the same time",
    error: ["overloaded", "gateway_busy"],
    message: "The gateway's buffer memory is full.",
    configKey: "bounds.in_flight",
  },
  // Bounds on a response.
  response: {
    max: 64 * MIB,
    description: "size of a response that is buffered or translated, in bytes",
    error: ["upstream", "too_large"],
    message: "The provider's response is larger than # bytes.",
    configKey: "bounds.response",
  },
  imageResponse: {
    max: 256 * MIB,
    description: "size of a response with images, in bytes",
    error: ["upstream", "too_large"],
    message: "The provider's response is larger than # bytes.",
  },
  event: {
    max: 4 * MIB,
    description: "size of one event of a provider's stream, in bytes",
    error: ["upstream", "event_too_large"],
    message: "The provider's stream contains an event larger than # bytes.",
  },
  largeEvent: {
    max: 32 * MIB,
    description:
      "size of one event in protocols whose events contain documents or whole " +
      "responses, in bytes",
    error: ["upstream", "event_too_large"],
    message: "The provider's stream contains an event larger than # bytes.",
  },
  imageEvent: {
    // Fits one image of 4096 × 4096 pixels, uncompressed and in base64.
    max: 96 * MIB,
    description: "size of one event in protocols whose events contain images, in bytes",
    error: ["upstream", "event_too_large"],
    message: "The provider's stream contains an event larger than # bytes.",
  },
  line: {
    max: MIB,
    description: "length of one line of a provider's stream, in bytes",
    error: ["upstream", "line_too_long"],
    message: "The provider's stream contains a line longer than # characters.",
  },
  events: {
    max: 1_000_000,
    description: "events of a translated response",
    error: ["upstream", "too_many_events"],
    message: "The provider's response has more than # events.",
  },
  blocks: {
    max: 4_096,
    description: "blocks of a response: texts, tool calls, and images",
    error: ["upstream", "too_many_blocks"],
    message: "The provider's response has more than # parts.",
  },
  usageReports: {
    max: 64,
    description: "models under which one response reports usage",
    error: ["upstream", "too_many_reports"],
    message: "The provider reports usage under more than # models for one response.",
  },
  countResponse: {
    max: 64 * KIB,
    description: "size of a provider's response to a token count request, in bytes",
    error: ["upstream", "too_large"],
    message: "The provider's response is larger than # bytes.",
  },
  modelList: {
    // Ten times the longest list that is known.
    max: 16 * MIB,
    description: "size of a provider's model list, in bytes",
    error: ["upstream", "too_large"],
    message: "The provider's response is larger than # bytes.",
  },
  responseId: {
    max: 256,
    description: "length of a response ID, in characters",
    error: null,
    message: "The ID is not stored in the ledger row.",
  },
  errorBody: {
    max: 64 * KIB,
    description: "size of a provider's error, in bytes",
    error: null,
    message: "The rest of the body is not read.",
  },
  citationSearch: {
    max: 8 * MIB,
    description: "bytes of text searched for a citation that is not at its stated position",
    error: null,
    message: "The text is not searched, and the citation is dropped.",
  },
  // Bounds on ledger queries.
  usageQueries: {
    max: 256,
    description: "reports waiting for the ledger",
    error: ["overloaded", "gateway_busy"],
    message: "Too many reports are waiting for the ledger.",
  },
  usageQueriesPerKey: {
    max: 8,
    description: "reports of one key waiting for the ledger",
    error: ["rate_limited", "too_many_reports"],
    message: "This key has # reports waiting. Wait until one is done.",
  },
  // Bounds on sockets.
  connections: {
    max: 10_000,
    description: "open connections per process",
    error: ["overloaded", "too_many_connections"],
    message: "Too many open connections.",
    configKey: "bounds.connections",
  },
  connectionsPerAddress: {
    max: 2_000,
    description: "open connections per client address",
    error: ["overloaded", "too_many_connections"],
    message: "Too many open connections from this address.",
    configKey: "bounds.connections_per_address",
  },
  requestsPerSocket: {
    max: 1_000,
    description: "requests per connection",
    error: null,
    message: "The connection is closed after the last request.",
  },
  inFlightPerSocket: {
    max: 8,
    description: "concurrent requests per connection",
    error: ["rate_limited", "too_many_in_flight"],
    message: "Too many concurrent requests on one connection.",
  },
  // Bounds on WebSockets.
  socketMessage: {
    max: 16 * MIB,
    description:
      "size of one message of a relayed WebSocket, in bytes; other messages have `max_body`",
    error: null,
    message: "The connection is closed with code 1009.",
    configKey: "bounds.socket_message",
  },
  socketFragments: {
    max: 4_096,
    description: "frames of one WebSocket message",
    error: null,
    message: "The connection is closed with code 1008.",
  },
  socketLanes: {
    max: 32,
    description: "named lanes of a WebSocket during its lifetime",
    error: ["invalid", "websocket_stream_limit_reached"],
    message:
      "This WebSocket connection has reached its maximum number of distinct stream IDs (#). " +
      "Reuse an existing stream_id or open a new WebSocket connection.",
  },
  socketRunning: {
    max: 16,
    description: "requests of one WebSocket that run at the same time",
    error: null,
    message: "Further requests wait in the queue of the connection.",
  },
  socketQueue: {
    max: 64,
    description: "requests that wait in the queue of one WebSocket",
    error: ["rate_limited", "websocket_queue_full"],
    message: "# requests are waiting on this WebSocket connection. Wait until one is done.",
  },
  scopeValue: {
    max: 256,
    description: "length of a value that names a member of a scope, in characters",
    error: ["invalid", "invalid_scope_value"],
    message: "A value that names a member of a scope must have at most # characters.",
  },
  headers: {
    max: 100,
    description: "header lines of a request",
    error: ["too_large", "too_many_headers"],
    message: "The request has more than # headers.",
  },
} as const satisfies { readonly [name: string]: Bound };

export type BoundName = keyof typeof BOUNDS;

export const boundMessage = (name: BoundName, max: number = BOUNDS[name].max): string =>
  BOUNDS[name].message.replace("#", String(max));
