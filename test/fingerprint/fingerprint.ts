// A new operation, as an external package adds it: its request, the facts for the host, and a
// protocol with both halves.
import {
  ERRORS,
  fail,
  type ClientHalf,
  type CommonRequest,
  type Json,
  type JsonObject,
  type ModelResponse,
  type Protocol,
  type ServerHalf,
  type Usage,
  type OperationSpec,
} from "tollgate/plugin";

export type FingerprintRequest = Readonly<
  CommonRequest & {
    operation: "fingerprint";
    inputs: readonly string[];
    dimensions?: number | undefined;
  }
>;
export interface Print {
  readonly values: readonly number[];
}

declare module "tollgate/plugin" {
  interface Operations {
    fingerprint: { request: FingerprintRequest; item: Print };
  }
}

export const fingerprintOperation: OperationSpec<"fingerprint"> = {
  name: "fingerprint",
  noun: "a fingerprint model",
  outputModality: "fingerprints",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["input"]],
  estimateUsage: ({ input }) => [[{ units: ["input"], count: input }]],
  estimateMissingUsage: ({ usage, inputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
  }),
  pricingHint: ['{ input: "…" }', "dollars per million tokens"],
  priceExamples: [{ description: "10,000 tokens in", usage: { input: 10_000 } }],
  sampleRequest: (model) => ({
    operation: "fingerprint",
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
  analyze: ({ input }) => ({ features: [], n: Array.isArray(input) ? input.length : 1 }),
  decodeRequest({ model, input, dimensions, ...rest }) {
    return {
      operation: "fingerprint",
      model: model as string,
      stream: false,
      inputs: [input].flat() as string[],
      dimensions: dimensions as number | undefined,
      rest: rest as JsonObject,
      ext: {},
    };
  },
  createEncoder: () => fail("unsupported", "Fingerprints are not streamed.", { param: "stream" }),
  encodeResponse: (answer: ModelResponse, { model }) => ({
    object: "list",
    model,
    data: (answer.items ?? []).map((item, index) => ({
      object: "fingerprint",
      index,
      fingerprint: (item as Print).values as Json,
    })),
    usage: { prompt_tokens: answer.usage.input ?? 0, total_tokens: answer.usage.input ?? 0 },
  }),
  encodeFault: ({ kind, message, code }) => ({
    status: ERRORS[kind][0],
    body: { error: { message, type: kind, code: code ?? kind } },
  }),
  ping: "",
};

const client: ClientHalf<"fingerprint"> = {
  paths: { generate: "/fingerprints" },
  encodeRequest: ({ inputs, dimensions }, { model }) => ({
    model,
    input: inputs,
    ...(dimensions !== undefined && { dimensions }),
  }),
  createDecoder: () => fail("unsupported", "Fingerprints are not streamed."),
  decodeResponse(body, emit) {
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
  decodeFault(status) {
    const kind = status === 429 ? "rate_limited" : status < 500 ? "invalid" : "upstream";
    return { kind, message: `The provider answered with ${status}.` };
  },
};

/** The bytes are forwarded, and the counts are read from them. */
const createPassthrough: NonNullable<ClientHalf<"fingerprint">["createPassthrough"]> = (sink) => {
  const chunks: Buffer[] = [];
  return {
    isBetweenEvents: true,
    push: (chunk) => void chunks.push(chunk),
    end() {
      const body = Buffer.concat(chunks);
      const said = parsed(body);
      sink.reportContent();
      sink.reportUsage({ type: "usage", usage: usageOf(said) });
      sink.reportFinish("stop");
      sink.write(body);
    },
    writeFault() {},
  };
};

/** `passes`: the upstream's bytes are forwarded unchanged. */
export const fingerprints = (passes = true): Protocol<"fingerprint"> => ({
  id: "fingerprints",
  operationSpec: fingerprintOperation,
  server,
  client: passes ? { ...client, createPassthrough } : client,
});
