// The bounds on everything that a client or an upstream sends, by name, and what happens beyond
// them. The list is complete: anything not listed here has no bound. Tests send exactly the limit
// and one more for each bound (`test/pipeline/admission`), and an attack test drives a running
// daemon to them (`test/rig/attack`).

export interface Bound {
  readonly max: number;
  /** The thing that is counted, with its unit. */
  readonly description: string;
  /**
   * Kind and code of the error beyond the bound. `null`: no error is raised, and `message`
   * describes what happens instead.
   */
  readonly error:
    | readonly [
        kind: "invalid" | "unsupported" | "too_large" | "upstream" | "overloaded" | "rate_limited",
        code: string,
      ]
    | null;
  /**
   * Message for the client or the reader of the list: what happens and what to do. `#` is replaced
   * by the bound.
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
    description: "bytes of a body",
    error: ["too_large", "request_too_large"],
    message: "The body is larger than # bytes.",
    configKey: "max_body",
  },
  jsonValues: {
    max: 100_000,
    description: "values in the JSON of a body; four numbers of a list are one",
    error: ["too_large", "too_many_values"],
    message: "The body has more than # values in its JSON. Send fewer messages, parts or tools.",
    configKey: "bounds.json_values",
  },
  jsonEscapes: {
    max: 2 * MIB,
    description: "escapes in the JSON of a body",
    error: ["too_large", "too_many_escapes"],
    message: "The body has more than # escapes in its JSON. Send its text as UTF-8.",
  },
  depth: {
    max: 64,
    description: "levels of a body",
    error: ["invalid", "too_deep"],
    message: "The body is nested deeper than # levels.",
  },
  name: {
    max: 256,
    description: "bytes of the name of a member of a body",
    error: ["invalid", "name_too_long"],
    message: "The name of a member of the body is longer than # bytes.",
  },
  elements: {
    max: 50_000,
    description: "elements of one list or object in a body",
    error: ["too_large", "too_many_parts"],
    message: "A list or an object in the body has more than # elements.",
  },
  stopSequences: {
    max: 16,
    description:
      "stop sequences that the gateway looks for, because the provider's format has none or not so many",
    error: ["unsupported", "too_many_stop_sequences"],
    message: "More than # stop sequences are not supported with this model. Send fewer.",
  },
  stopSequenceLength: {
    max: 256,
    description: "characters of one such stop sequence",
    error: ["unsupported", "stop_sequence_too_long"],
    message:
      "Stop sequences of more than # characters are not supported with this model. Send shorter ones.",
  },
  formParts: {
    max: 64,
    description: "parts of a form",
    error: ["too_large", "too_many_form_parts"],
    message: "The form has more than # parts.",
  },
  formHead: {
    max: 16 * KIB,
    description: "bytes of the head of one part of a form",
    error: ["too_large", "form_head_too_large"],
    message: "A part of the form has a head of more than # bytes.",
  },
  tools: {
    max: 4_096,
    description: "tools of a request",
    error: ["too_large", "too_many_tools"],
    message: "The body has more than # tools.",
  },
  envelope: {
    // Larger than any provider's own proof.
    max: 4 * MIB,
    description: "characters of one proof that a client brings back, as it was sealed",
    error: null,
    message: "It is none of ours, and is not opened.",
  },
  // Bounds on the schemas in a request to a model that supports only part of JSON Schema.
  schemaLevels: {
    max: 64,
    description: "levels of a schema, references followed",
    error: ["unsupported", "unsupported_schema"],
    message: "more than # levels",
  },
  schemaParts: {
    max: 10_000,
    description: "parts of a schema, references followed",
    error: ["unsupported", "unsupported_schema"],
    message: "more than # parts",
  },
  schemaExpansion: {
    max: 1_000_000,
    description:
      "letters that the schemas of one request spell out by references, beyond those that stand in them",
    error: ["unsupported", "unsupported_schema"],
    message: "references that spell more than # letters",
  },
  // Bounds on all requests of a process together.
  inFlight: {
    max: 256 * MIB,
    description: "bytes of bodies and of whole answers that are held at once",
    error: ["overloaded", "gateway_busy"],
    message: "The gateway holds as many bytes as it may.",
    configKey: "bounds.in_flight",
  },
  // Bounds on a response.
  response: {
    max: 64 * MIB,
    description: "bytes of an answer that is held or written anew",
    error: ["upstream", "too_large"],
    message: "The provider's answer is larger than # bytes.",
    configKey: "bounds.response",
  },
  imageResponse: {
    max: 256 * MIB,
    description: "bytes of an answer with pictures",
    error: ["upstream", "too_large"],
    message: "The provider's answer is larger than # bytes.",
  },
  event: {
    max: 4 * MIB,
    description: "bytes of one event of a provider's stream",
    error: ["upstream", "event_too_large"],
    message: "One event of the provider's stream is larger than # bytes.",
  },
  largeEvent: {
    max: 32 * MIB,
    description: "bytes of one event on a wire whose events hold documents or whole answers",
    error: ["upstream", "event_too_large"],
    message: "One event of the provider's stream is larger than # bytes.",
  },
  imageEvent: {
    // Fits one image of 4096 × 4096 pixels, uncompressed and in base64.
    max: 96 * MIB,
    description: "bytes of one event on a wire whose events hold pictures",
    error: ["upstream", "event_too_large"],
    message: "One event of the provider's stream is larger than # bytes.",
  },
  line: {
    max: MIB,
    description: "bytes of one line of a provider's stream",
    error: ["upstream", "line_too_long"],
    message: "One line of the provider's stream is longer than # characters.",
  },
  events: {
    max: 1_000_000,
    description: "events of an answer that is written anew",
    error: ["upstream", "too_many_events"],
    message: "The provider's answer has more than # events.",
  },
  blocks: {
    max: 4_096,
    description: "blocks of an answer: texts, calls, pictures",
    error: ["upstream", "too_many_blocks"],
    message: "The provider's answer has more than # parts.",
  },
  usageReports: {
    max: 64,
    description: "models that one answer reports its usage under",
    error: ["upstream", "too_many_reports"],
    message: "The provider reports usage under more than # models for one answer.",
  },
  countResponse: {
    max: 64 * KIB,
    description: "bytes of a provider's answer to a question for a number of tokens",
    error: ["upstream", "too_large"],
    message: "The provider's answer is larger than # bytes.",
  },
  modelList: {
    // Ten times the longest list that is known.
    max: 16 * MIB,
    description: "bytes of a provider's answer to a question for its models",
    error: ["upstream", "too_large"],
    message: "The provider's answer is larger than # bytes.",
  },
  responseId: {
    max: 256,
    description: "characters of an answer's id",
    error: null,
    message: "It is not kept: the ledger's row has no id.",
  },
  errorBody: {
    max: 64 * KIB,
    description: "bytes of a provider's error",
    error: null,
    message: "What follows is not read.",
  },
  citationSearch: {
    max: 8 * MIB,
    description:
      "bytes of a text that are searched for cited words which do not stand where they are said to",
    error: null,
    message: "They are not looked for: the citation is left out.",
  },
  // Bounds on ledger queries.
  usageQueries: {
    max: 256,
    description: "reports that wait for the ledger",
    error: ["overloaded", "gateway_busy"],
    message: "Too many reports wait for the ledger.",
  },
  usageQueriesPerKey: {
    max: 8,
    description: "reports of one key that wait for the ledger",
    error: ["rate_limited", "too_many_reports"],
    message: "This key has # reports waiting. Wait for one of them.",
  },
  // Bounds on sockets.
  connections: {
    max: 10_000,
    description: "open connections of a process",
    error: ["overloaded", "too_many_connections"],
    message: "There are too many connections here.",
    configKey: "bounds.connections",
  },
  connectionsPerAddress: {
    max: 2_000,
    description: "open connections of one address",
    error: ["overloaded", "too_many_connections"],
    message: "There are too many connections from this address.",
    configKey: "bounds.connections_per_address",
  },
  requestsPerSocket: {
    max: 1_000,
    description: "requests on one connection",
    error: null,
    message: "The connection is closed after the last one.",
  },
  inFlightPerSocket: {
    max: 8,
    description: "requests at once on one connection",
    error: ["rate_limited", "too_many_in_flight"],
    message: "Too many requests at once on one connection.",
  },
  headers: {
    max: 100,
    description: "lines of a head",
    error: ["too_large", "too_many_headers"],
    message: "More than # headers.",
  },
} as const satisfies { readonly [name: string]: Bound };

export type BoundName = keyof typeof BOUNDS;

export const boundMessage = (name: BoundName, max: number = BOUNDS[name].max): string =>
  BOUNDS[name].message.replace("#", String(max));
