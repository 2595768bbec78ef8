// Reranking through the agent runtime. Its response contains no usage. The number of documents is
// billed.
import {
  fail,
  rerankOperation,
  type Body,
  type CallContext,
  type ModelEvent,
  type Protocol,
  type RerankRequest,
} from "tollgate/plugin";
import { valueFields } from "tollgate/protocols/references";
import { listOf, objectOf, parsed, textOf } from "./json.ts";
import { parseAwsError } from "./errors.ts";

/** Creates the protocol. `arnOf` returns a model's ARN, which this service requires. */
export const bedrockRerank = (arnOf: (model: string) => string): Protocol<"rerank"> => ({
  id: "bedrock-rerank",
  operationSpec: rerankOperation,
  zdrAllowedFields: [
    [
      "what is ranked, and by what",
      {
        queries: { ...valueFields("type"), textQuery: valueFields("text") },
        sources: {
          ...valueFields("type"),
          inlineDocumentSource: {
            ...valueFields("type"),
            textDocument: valueFields("text"),
            jsonDocument: "free",
          },
        },
        rerankingConfiguration: {
          ...valueFields("type"),
          bedrockRerankingConfiguration: {
            ...valueFields("numberOfResults"),
            modelConfiguration: valueFields("modelArn"),
          },
        },
      },
    ],
  ],
  client: {
    paths: { generate: "/rerank" },
    encodeRequest: (r, of) => request(r, of, arnOf(of.model)),
    knowsField: () => true,
    createDecoder: () =>
      fail("upstream", "The provider streamed a ranking, which must be one response.", {
        code: "bad_answer",
      }),
    decodeResponse: whole,
    decodeFault: parseAwsError,
  },
});

function request(r: RerankRequest, of: CallContext, modelArn: string): Body {
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  if (r.maxTokensPerDocument !== undefined) of.reportLoss("max_tokens_per_doc", "dropped");
  if (r.truncate !== undefined) of.reportLoss("truncation", "dropped");
  const numberOfResults = r.topN === undefined ? undefined : Math.min(r.topN, r.documents.length);
  return {
    queries: [{ type: "TEXT", textQuery: { text: r.query } }],
    sources: r.documents.map((document) => ({
      type: "INLINE",
      inlineDocumentSource: inlineOf(document),
    })),
    rerankingConfiguration: {
      type: "BEDROCK_RERANKING_MODEL",
      bedrockRerankingConfiguration: {
        modelConfiguration: { modelArn },
        ...(numberOfResults !== undefined && { numberOfResults }),
      },
    },
  };
}

function inlineOf(document: RerankRequest["documents"][number]) {
  const text = typeof document === "string" ? document : textOf(document["text"]);
  return text === undefined
    ? { type: "JSON", jsonDocument: document }
    : { type: "TEXT", textDocument: { text } };
}

function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const results = parsed(body)?.["results"];
  if (!Array.isArray(results))
    return fail("upstream", "The provider returned no ranking.", { code: "bad_answer" });
  emit({ type: "start" });
  for (const [place, raw] of listOf(results).entries()) {
    const { index, relevanceScore: score } = objectOf(raw) ?? {};
    if (typeof index !== "number" || typeof score !== "number")
      return fail("upstream", "The provider's ranking lacks an index or a score.", {
        code: "bad_answer",
      });
    emit({ type: "item", index: place, item: { index, score } });
  }
  emit({ type: "usage", usage: {} });
  emit({ type: "finish", reason: "stop" });
}
