// Rankings by the agent runtime. Nothing is counted in its answer: what is billed is the number of documents.
import {
  fail,
  rerankWork,
  type Body,
  type CallContext,
  type ModelEvent,
  type Protocol,
  type RerankRequest,
} from "tollgate/plugin";
import { plain } from "tollgate/protocols/look";
import { listOf, objectOf, parsed, textOf } from "./json.ts";
import { faultOf } from "./refusal.ts";

/** `arnOf`: the full name of a model, which is what this service wants. */
export const bedrockRerank = (arnOf: (model: string) => string): Protocol<"rerank"> => ({
  id: "bedrock-rerank",
  work: rerankWork,
  reviewed: [
    [
      "what is ranked, and by what",
      {
        queries: { ...plain("type"), textQuery: plain("text") },
        sources: {
          ...plain("type"),
          inlineDocumentSource: {
            ...plain("type"),
            textDocument: plain("text"),
            jsonDocument: "free",
          },
        },
        rerankingConfiguration: {
          ...plain("type"),
          bedrockRerankingConfiguration: {
            ...plain("numberOfResults"),
            modelConfiguration: plain("modelArn"),
          },
        },
      },
    ],
  ],
  client: {
    paths: { generate: "/rerank" },
    request: (r, of) => request(r, of, arnOf(of.model)),
    knows: () => true,
    stream: () => fail("upstream", "A ranking comes in one piece.", { code: "bad_answer" }),
    whole,
    fault: faultOf,
  },
});

function request(r: RerankRequest, of: CallContext, modelArn: string): Body {
  if (r.user !== undefined) of.lose("user", "dropped");
  if (r.perDocument !== undefined) of.lose("max_tokens_per_doc", "dropped");
  if (r.truncate !== undefined) of.lose("truncation", "dropped");
  const numberOfResults = r.most === undefined ? undefined : Math.min(r.most, r.documents.length);
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
  const said = parsed(body)?.["results"];
  if (!Array.isArray(said))
    return fail("upstream", "The provider answered without a ranking.", { code: "bad_answer" });
  emit({ type: "start" });
  for (const [place, raw] of listOf(said).entries()) {
    const { index, relevanceScore: score } = objectOf(raw) ?? {};
    if (typeof index !== "number" || typeof score !== "number")
      return fail("upstream", "The provider's ranking has no index or no score.", {
        code: "bad_answer",
      });
    emit({ type: "item", index: place, item: { index, score } });
  }
  emit({ type: "usage", usage: {} });
  emit({ type: "finish", reason: "stop" });
}
