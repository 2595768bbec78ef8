// Converse, Bedrock's protocol for all chat models. Only the client half exists, because clients
// use Converse only with AWS itself.
import {
  chatOperation,
  fail,
  type Outgoing,
  type Protocol,
  type Body,
  type JsonObject,
  type RequestFacts,
} from "tollgate/plugin";
import { countOf, objectOf, parsed, textOf, listOf } from "../json.ts";
import { modelPath } from "../invoke-model.ts";
import { parseAwsError } from "../errors.ts";
import { ConverseReader, createDecoder } from "./reader.ts";
import { encodeRequest } from "./request.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { ID } from "./constants.ts";
import { referencedFeatures, findReferences } from "tollgate/protocols/references";

// Decodes a complete Converse response.
function decodeResponse(body: Buffer, reading: ConverseReader): void {
  const answer = parsed(body);
  const content = objectOf(objectOf(answer?.["output"])?.["message"])?.["content"];
  if (!answer || !Array.isArray(content))
    return fail("upstream", "The provider's response has no content.", { code: "bad_answer" });
  reading.start();
  for (const [at, raw] of listOf(content).entries()) {
    const block = objectOf(raw);
    if (block) reading.block(at, block);
  }
  reading.count(answer);
  reading.setStopReason(textOf(answer["stopReason"]) ?? "end_turn");
  reading.end();
}

/** A guardrail that the operator configured at AWS and that applies to every response. */
export interface Guardrail {
  readonly id: string;
  readonly version: string;
}

export const converse = (guardrail?: Guardrail): Protocol<"chat"> => ({
  id: ID,
  operationSpec: chatOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  client: {
    paths: {
      generate: (of) => modelPath(of.model, of.stream ? "converse-stream" : "converse"),
      count: (of) => modelPath(of.model, "count-tokens"),
    },
    encodeRequest,
    // Unknown fields of another protocol have no meaning in this API.
    knowsField: () => true,
    analyze,
    createDecoder: (emit, _of, headers) =>
      createDecoder(new ConverseReader(emit, textOf(headers["x-amzn-requestid"]))),
    decodeResponse: (body, emit, _of, headers) =>
      decodeResponse(body, new ConverseReader(emit, textOf(headers["x-amzn-requestid"]))),
    decodeFault: parseAwsError,
    decodeCount: count,
    capOutput: cap,
    prepare(out, of) {
      if (guardrail === undefined || of.actionType === "count") return;
      const { id, version } = guardrail;
      out.set("guardrailConfig", { guardrailIdentifier: id, guardrailVersion: version });
    },
  },
});

const count = (body: Buffer): number =>
  countOf(parsed(body)?.["inputTokens"]) ??
  fail("upstream", "The provider's token count is not a number.", { code: "bad_answer" });

function cap(out: Outgoing, tokens: number): void {
  const config = objectOf(out.get("inferenceConfig"));
  const requestedTokens = countOf(config?.["maxTokens"]);
  if (requestedTokens === undefined || requestedTokens > tokens)
    out.set("inferenceConfig", { ...config, maxTokens: tokens });
}

// Analyzes an outgoing body for its possible cost and its references.

/** Block members with content other than text, and the feature that each requires. */
const MEDIA = { image: "vision", video: undefined, audio: "audio", document: "documents" } as const;

function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const features = referencedFeatures(named);
  const media = { count: 0, bytes: 0 };
  const seen = (raw: unknown): void => {
    const block = objectOf(raw);
    for (const name of Object.keys(MEDIA) as (keyof typeof MEDIA)[]) {
      const of = objectOf(block?.[name]);
      if (!of) continue;
      const feature = MEDIA[name];
      if (feature) features.add(feature);
      media.count++;
      media.bytes += textOf(objectOf(of["source"])?.["bytes"])?.length ?? 0;
    }
    for (const inner of listOf(objectOf(block?.["toolResult"])?.["content"])) seen(inner);
  };
  for (const message of listOf(body["messages"]))
    for (const block of listOf(objectOf(message)?.["content"])) seen(block);
  if (objectOf(body["toolConfig"])) features.add("tools");
  if (listOf(body["system"]).length > 0) features.add("system");
  const output = objectOf(body["outputConfig"]) ?? ({} as JsonObject);
  if (output["textFormat"]) features.add("json_schema");
  if (output["effort"]) features.add("reasoning");
  return {
    features: [...features],
    references: named,
    maxOutput: countOf(objectOf(body["inferenceConfig"])?.["maxTokens"]),
    tier: textOf(objectOf(body["serviceTier"])?.["type"]),
    ...(media.count > 0 && { media }),
  };
}
