// Converse, Bedrock's own protocol for all models that chat. A client half: clients speak to AWS in it, and none to a gateway.
import { chatOperation, fail, type Outgoing, type Protocol } from "tollgate/plugin";
import { modelPath } from "../model-path.ts";
import { parseAwsError } from "../errors.ts";
import { countOf, objectOf, parsed, textOf } from "../json.ts";
import { ConverseReader } from "./reader.ts";
import { encodeRequest } from "./request.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { createDecoder } from "./stream.ts";
import { analyze } from "./analyze.ts";
import { decodeResponse } from "./response.ts";
import { ID } from "./constants.ts";

/** What the operator has set before every answer, at AWS. */
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
    // What another protocol's codec did not know means nothing here.
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
  fail("upstream", "The provider's count of tokens is not a number.", { code: "bad_answer" });

function cap(out: Outgoing, tokens: number): void {
  const config = objectOf(out.get("inferenceConfig"));
  const asked = countOf(config?.["maxTokens"]);
  if (asked === undefined || asked > tokens)
    out.set("inferenceConfig", { ...config, maxTokens: tokens });
}
