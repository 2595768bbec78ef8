// How much there may be of anything that a client or an upstream sends, by name, and what happens beyond it. One list: what
// stands nowhere in it has no bound. Each is driven to its limit and one beyond (test/walk/bounds), and an attacker drives the
// running daemon to them (test/rig/attack).

export interface Bound {
  readonly most: number;
  /** What is counted. */
  readonly of: string;
  /** The kind and code of the error beyond it; `null`: it ends without one, as `beyond` says. */
  readonly error:
    | readonly [
        kind: "invalid" | "unsupported" | "too_large" | "upstream" | "overloaded" | "rate_limited",
        code: string,
      ]
    | null;
  /** For a client, or for the reader of the list: what happens, and what to do. `#` is the number. */
  readonly beyond: string;
  /** Where an operator may set another one. */
  readonly key?: string;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const BOUNDS = {
  // Of a request.
  body: {
    most: 32 * MIB,
    of: "bytes of a body",
    error: ["too_large", "request_too_large"],
    beyond: "The body is larger than # bytes.",
    key: "max_body",
  },
  values: {
    most: 100_000,
    of: "values in the JSON of a body; four numbers of a list are one",
    error: ["too_large", "too_many_values"],
    beyond: "The body has more than # values in its JSON. Send fewer messages, parts or tools.",
    key: "bounds.values",
  },
  escapes: {
    most: 2 * MIB,
    of: "escapes in the JSON of a body",
    error: ["too_large", "too_many_escapes"],
    beyond: "The body has more than # escapes in its JSON. Send its text as UTF-8.",
  },
  depth: {
    most: 64,
    of: "levels of a body",
    error: ["invalid", "too_deep"],
    beyond: "The body is nested deeper than # levels.",
  },
  name: {
    most: 256,
    of: "bytes of the name of a member of a body",
    error: ["invalid", "name_too_long"],
    beyond: "The name of a member of the body is longer than # bytes.",
  },
  parts: {
    most: 50_000,
    of: "elements of one list or object in a body",
    error: ["too_large", "too_many_parts"],
    beyond: "A list or an object in the body has more than # elements.",
  },
  stops: {
    most: 16,
    of: "stop sequences that the gateway looks for, because the provider's format has none or not so many",
    error: ["unsupported", "too_many_stop_sequences"],
    beyond: "More than # stop sequences are not supported with this model. Send fewer.",
  },
  stopLength: {
    most: 256,
    of: "characters of one such stop sequence",
    error: ["unsupported", "stop_sequence_too_long"],
    beyond:
      "Stop sequences of more than # characters are not supported with this model. Send shorter ones.",
  },
  formParts: {
    most: 64,
    of: "parts of a form",
    error: ["too_large", "too_many_form_parts"],
    beyond: "The form has more than # parts.",
  },
  formHead: {
    most: 16 * KIB,
    of: "bytes of the head of one part of a form",
    error: ["too_large", "form_head_too_large"],
    beyond: "A part of the form has a head of more than # bytes.",
  },
  tools: {
    most: 4_096,
    of: "tools of a request",
    error: ["too_large", "too_many_tools"],
    beyond: "The body has more than # tools.",
  },
  envelope: {
    // Larger than any provider's own proof.
    most: 4 * MIB,
    of: "characters of one proof that a client brings back, as it was sealed",
    error: null,
    beyond: "It is none of ours, and is not opened.",
  },
  // Of the schemas in a request to a model that reads a part of JSON Schema only.
  schemaLevels: {
    most: 64,
    of: "levels of a schema, references followed",
    error: ["unsupported", "unsupported_schema"],
    beyond: "more than # levels",
  },
  schemaParts: {
    most: 10_000,
    of: "parts of a schema, references followed",
    error: ["unsupported", "unsupported_schema"],
    beyond: "more than # parts",
  },
  schemaSpelled: {
    most: 1_000_000,
    of: "letters that the schemas of one request spell out by references, beyond those that stand in them",
    error: ["unsupported", "unsupported_schema"],
    beyond: "references that spell more than # letters",
  },
  // Of all requests of a process together.
  inFlight: {
    most: 256 * MIB,
    of: "bytes of bodies and of whole answers that are held at once",
    error: ["overloaded", "gateway_busy"],
    beyond: "The gateway holds as many bytes as it may.",
    key: "bounds.in_flight",
  },
  // Of an answer.
  answer: {
    most: 64 * MIB,
    of: "bytes of an answer that is held or written anew",
    error: ["upstream", "too_large"],
    beyond: "The provider's answer is larger than # bytes.",
    key: "bounds.answer",
  },
  pictures: {
    most: 256 * MIB,
    of: "bytes of an answer with pictures",
    error: ["upstream", "too_large"],
    beyond: "The provider's answer is larger than # bytes.",
  },
  event: {
    most: 4 * MIB,
    of: "bytes of one event of a provider's stream",
    error: ["upstream", "event_too_large"],
    beyond: "One event of the provider's stream is larger than # bytes.",
  },
  largeEvent: {
    most: 32 * MIB,
    of: "bytes of one event on a wire whose events hold documents or whole answers",
    error: ["upstream", "event_too_large"],
    beyond: "One event of the provider's stream is larger than # bytes.",
  },
  pictureEvent: {
    // One picture of 4096 × 4096 pixels, uncompressed and in base64, fits.
    most: 96 * MIB,
    of: "bytes of one event on a wire whose events hold pictures",
    error: ["upstream", "event_too_large"],
    beyond: "One event of the provider's stream is larger than # bytes.",
  },
  line: {
    most: MIB,
    of: "bytes of one line of a provider's stream",
    error: ["upstream", "line_too_long"],
    beyond: "One line of the provider's stream is longer than # characters.",
  },
  events: {
    most: 1_000_000,
    of: "events of an answer that is written anew",
    error: ["upstream", "too_many_events"],
    beyond: "The provider's answer has more than # events.",
  },
  blocks: {
    most: 4_096,
    of: "blocks of an answer: texts, calls, pictures",
    error: ["upstream", "too_many_blocks"],
    beyond: "The provider's answer has more than # parts.",
  },
  reports: {
    most: 64,
    of: "models that one answer reports its usage under",
    error: ["upstream", "too_many_reports"],
    beyond: "The provider reports usage under more than # models for one answer.",
  },
  countAnswer: {
    most: 64 * KIB,
    of: "bytes of a provider's answer to a question for a number of tokens",
    error: ["upstream", "too_large"],
    beyond: "The provider's answer is larger than # bytes.",
  },
  modelList: {
    // The longest list known is a tenth of it.
    most: 16 * MIB,
    of: "bytes of a provider's answer to a question for its models",
    error: ["upstream", "too_large"],
    beyond: "The provider's answer is larger than # bytes.",
  },
  id: {
    most: 256,
    of: "characters of an answer's id",
    error: null,
    beyond: "It is not kept: the ledger's row has no id.",
  },
  refusal: {
    most: 64 * KIB,
    of: "bytes of a provider's error",
    error: null,
    beyond: "What follows is not read.",
  },
  citationSearch: {
    most: 8 * MIB,
    of: "bytes of a text that are searched for cited words which do not stand where they are said to",
    error: null,
    beyond: "They are not looked for: the citation is left out.",
  },
  // Of the ledger.
  readings: {
    most: 256,
    of: "reports that wait for the ledger",
    error: ["overloaded", "gateway_busy"],
    beyond: "Too many reports wait for the ledger.",
  },
  readingsPerKey: {
    most: 8,
    of: "reports of one key that wait for the ledger",
    error: ["rate_limited", "too_many_reports"],
    beyond: "This key has # reports waiting. Wait for one of them.",
  },
  // Of sockets.
  connections: {
    most: 10_000,
    of: "open connections of a process",
    error: ["overloaded", "too_many_connections"],
    beyond: "There are too many connections here.",
    key: "bounds.connections",
  },
  connectionsPerAddress: {
    most: 2_000,
    of: "open connections of one address",
    error: ["overloaded", "too_many_connections"],
    beyond: "There are too many connections from this address.",
    key: "bounds.connections_per_address",
  },
  requestsPerSocket: {
    most: 1_000,
    of: "requests on one connection",
    error: null,
    beyond: "The connection is closed after the last one.",
  },
  inFlightPerSocket: {
    most: 8,
    of: "requests at once on one connection",
    error: ["rate_limited", "too_many_in_flight"],
    beyond: "Too many requests at once on one connection.",
  },
  headers: {
    most: 100,
    of: "lines of a head",
    error: ["too_large", "too_many_headers"],
    beyond: "More than # headers.",
  },
} as const satisfies { readonly [name: string]: Bound };

export type BoundName = keyof typeof BOUNDS;

export const beyond = (name: BoundName, most: number = BOUNDS[name].most): string =>
  BOUNDS[name].beyond.replace("#", String(most));
