// Converse, Bedrock's protocol for all chat models. Only the client half exists, since clients use
// Converse only with AWS itself.
import { chatOperation, fail, type Outgoing, type Protocol } from "tollgate/plugin";
import { modelPath } from "../model-path.ts";
import { parseAwsError } from "../errors.ts";
import { countOf, objectOf, parsed, textOf, listOf } from "../json.ts";
import { ConverseReader } from "./reader.ts";
import { encodeRequest } from "./request.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { createDecoder } from "./stream.ts";
import { analyze } from "./analyze.ts";
import { ID } from "./constants.ts";

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
    // Fields that another protocol's codec does not know have no meaning here.
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
  const asked = countOf(config?.["maxTokens"]);
  if (asked === undefined || asked > tokens)
    out.set("inferenceConfig", { ...config, maxTokens: tokens });
}
