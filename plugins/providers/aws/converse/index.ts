// Converse, Bedrock's own protocol for all models that chat. A client half: clients speak to AWS in it, and none to a gateway.
import { chatWork, fail, type Outgoing, type Protocol } from "tollgate/plugin";
import { placed } from "../placed.ts";
import { faultOf } from "../refusal.ts";
import { countOf, objectOf, parsed, textOf } from "../json.ts";
import { ConverseReader } from "./reader.ts";
import { request } from "./request.ts";
import { REVIEWED } from "./reviewed.ts";
import { stream } from "./stream.ts";
import { survey } from "./survey.ts";
import { whole } from "./whole.ts";
import { ID } from "./words.ts";

/** What the operator has set before every answer, at AWS. */
export interface Guardrail {
  readonly id: string;
  readonly version: string;
}

export const converse = (guardrail?: Guardrail): Protocol<"chat"> => ({
  id: ID,
  work: chatWork,
  reviewed: REVIEWED,
  client: {
    paths: {
      generate: (of) => placed(of.model, of.stream ? "converse-stream" : "converse"),
      count: (of) => placed(of.model, "count-tokens"),
    },
    request,
    // What another protocol's codec did not know means nothing here.
    knows: () => true,
    survey,
    stream: (emit, _of, headers) =>
      stream(new ConverseReader(emit, textOf(headers["x-amzn-requestid"]))),
    whole: (body, emit, _of, headers) =>
      whole(body, new ConverseReader(emit, textOf(headers["x-amzn-requestid"]))),
    fault: faultOf,
    count,
    cap,
    prepare(out, of) {
      if (guardrail === undefined || of.op === "count") return;
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
