// A kind that the gateway does not know, as a package outside the tree adds it: what is asked for, what the host must know
// of it, and a protocol with both halves.
import {
  ERRORS,
  fail,
  type ClientHalf,
  type CommonRequest,
  type Json,
  type JsonObject,
  type ModelAnswer,
  type Protocol,
  type ServerHalf,
  type Usage,
  type Work,
} from "tollgate/plugin";

export type FingerprintRequest = Readonly<
  CommonRequest & {
    kind: "fingerprint";
    inputs: readonly string[];
    dimensions?: number | undefined;
  }
>;
export interface Print {
  readonly values: readonly number[];
}

declare module "tollgate/plugin" {
  interface Works {
    fingerprint: { request: FingerprintRequest; item: Print };
  }
}

export const fingerprintWork: Work<"fingerprint"> = {
  kind: "fingerprint",
  noun: "a fingerprint model",
  modality: "fingerprints",
  listed: true,
  written: false,
  whole: [["input"]],
  most: ({ input }) => [[{ units: ["input"], count: input }]],
  guess: ({ usage, input }) => ({ ...usage, input: usage.input ?? input }),
  pricing: ['{ input: "…" }', "dollars per million tokens"],
  examples: [{ about: "10,000 tokens in", usage: { input: 10_000 } }],
  sample: (model) => ({
    kind: "fingerprint",
    model,
    stream: false,
    inputs: ["Hello"],
    rest: {},
    ext: {},
  }),
};

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(body: Buffer): JsonObject {
  let said: unknown;
  try {
    said = JSON.parse(body.toString());
  } catch {
    said = undefined;
  }
  return isObject(said)
    ? said
    : fail("upstream", "The provider's answer is not JSON.", { code: "bad_json" });
}

const usageOf = (said: JsonObject): Usage => {
  const usage = said["usage"];
  const input = isObject(usage) ? usage["prompt_tokens"] : undefined;
  return typeof input === "number" ? { input } : {};
};

const server: ServerHalf<"fingerprint"> = {
  schema: {
    type: "object",
    required: ["input"],
    properties: {
      input: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      dimensions: { type: "integer", minimum: 1 },
    },
  },
  survey: ({ input }) => ({ features: [], n: Array.isArray(input) ? input.length : 1 }),
  request({ model, input, dimensions, ...rest }) {
    return {
      kind: "fingerprint",
      model: model as string,
      stream: false,
      inputs: [input].flat() as string[],
      dimensions: dimensions as number | undefined,
      rest: rest as JsonObject,
      ext: {},
    };
  },
  stream: () => fail("unsupported", "Fingerprints are not streamed.", { param: "stream" }),
  whole: (answer: ModelAnswer, { model }) => ({
    object: "list",
    model,
    data: (answer.items ?? []).map((item, index) => ({
      object: "fingerprint",
      index,
      fingerprint: (item as Print).values as Json,
    })),
    usage: { prompt_tokens: answer.usage.input ?? 0, total_tokens: answer.usage.input ?? 0 },
  }),
  fault: ({ kind, message, code }) => ({
    status: ERRORS[kind][0],
    body: { error: { message, type: kind, code: code ?? kind } },
  }),
  ping: "",
};

const client: ClientHalf<"fingerprint"> = {
  paths: { generate: "/fingerprints" },
  request: ({ inputs, dimensions }, { model }) => ({
    model,
    input: inputs,
    ...(dimensions !== undefined && { dimensions }),
  }),
  stream: () => fail("unsupported", "Fingerprints are not streamed."),
  whole(body, emit) {
    const said = parsed(body);
    const { data } = said;
    if (!Array.isArray(data))
      return fail("upstream", "The provider's answer has no prints.", { code: "bad_json" });
    emit({ type: "start" });
    data.forEach((row, index) => {
      const values = isObject(row) ? row["fingerprint"] : undefined;
      if (!Array.isArray(values)) return fail("upstream", "A print is missing.");
      return emit({ type: "item", index, item: { values: values as number[] } });
    });
    emit({ type: "usage", usage: usageOf(said) });
    emit({ type: "finish", reason: "stop" });
  },
  fault(status) {
    const kind = status === 429 ? "rate_limited" : status < 500 ? "invalid" : "upstream";
    return { kind, message: `The provider answered with ${status}.` };
  },
};

/** The bytes pass; the counts are read from them. */
const relay: NonNullable<ClientHalf<"fingerprint">["relay"]> = (sink) => {
  const chunks: Buffer[] = [];
  return {
    between: true,
    push: (chunk) => void chunks.push(chunk),
    end() {
      const body = Buffer.concat(chunks);
      const said = parsed(body);
      sink.content();
      sink.usage({ type: "usage", usage: usageOf(said) });
      sink.finish("stop");
      sink.bytes(body);
    },
    fail() {},
  };
};

/** `passes`: upstream's bytes go on as they came. */
export const fingerprints = (passes = true): Protocol<"fingerprint"> => ({
  id: "fingerprints",
  work: fingerprintWork,
  server,
  client: passes ? { ...client, relay } : client,
});
