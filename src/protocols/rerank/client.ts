// The half of the rerank protocol that faces providers.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { RerankRequest } from "../../model/request.ts";
import type { Body, JsonObject, Json } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type {
  CallContext,
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../plugin/protocol.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import { omitUndefined, asText, asList, parseObject, isObject } from "../json-values.ts";
import { createResponsePassthrough, writeJson, openaiFaultBody } from "../passthrough.ts";
import { replaceModelName } from "../sse/index.ts";
import {
  type RerankDialect,
  parseRankedDocument,
  usageOf,
  toDocumentObject,
  validateRanking,
  readRankingExpectation,
  type RankingExpectation,
  metaTo,
  tokensTo,
} from "./spec.ts";

/** Encodes a request for Cohere and compatible backends. */
export function encodeRequest(
  r: RerankRequest,
  of: Pick<CallContext, "model" | "reportLoss">,
): Body {
  if (r.truncate === false) of.reportLoss("truncation", "dropped");
  return omitUndefined({
    model: of.model,
    query: r.query,
    documents: r.documents,
    top_n: r.topN,
    return_documents: r.returnDocuments,
    max_tokens_per_doc: r.maxTokensPerDocument,
    user: r.user,
  });
}

/**
 * Encodes a request for Voyage, which ranks text only and has one switch for truncating long
 * documents.
 */
export function encodeVoyageRequest(
  r: RerankRequest,
  of: Pick<CallContext, "model" | "reportLoss">,
): Body {
  if (r.maxTokensPerDocument !== undefined) of.reportLoss("max_tokens_per_doc", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  return omitUndefined({
    model: of.model,
    query: r.query,
    documents: requireTexts(r.documents, of.model),
    top_k: r.topN,
    return_documents: r.returnDocuments,
    truncation: r.truncate,
  });
}

const requireTexts = (documents: RerankRequest["documents"], model: string): readonly string[] =>
  documents.map(
    (document) =>
      asText(document) ??
      asText((document as { text?: unknown }).text) ??
      fail("unsupported", `${model} supports text documents only.`, { param: "documents" }),
  );

/** Applies the dialect in both modes. */
export function prepare(out: Outgoing, of: CallContext, dialect: RerankDialect): void {
  const most = out.get("top_k");
  if (most !== undefined) {
    out.remove("top_k");
    if (most !== null && out.get("top_n") === undefined) out.set("top_n", most);
  }
  // Voyage's clients always send `truncation`. Backends of this protocol have no such field and
  // always truncate.
  if (out.get("truncation") !== undefined) out.remove("truncation");
  if (dialect.returnsDocuments === false && out.get("return_documents") !== undefined)
    out.remove("return_documents");
  const documents = asList(out.get("documents"));
  if (dialect.textOnly && documents.some((one) => typeof one !== "string"))
    out.set("documents", requireTexts(documents as never, of.model));
}

/** Decodes a backend's ranking into events, one item per document. */
export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const { answer, rows } = parseRankings(body);
  emit(omitUndefined({ type: "start" as const, id: asText(answer["id"]) }));
  rows.forEach((item, index) => emit({ type: "item", index, item }));
  emit({ type: "usage", usage: usageOf(answer) });
  emit({ type: "finish", reason: "stop" });
}

/** Parses a ranking. Backends call the list `results` or `data`. */
function parseRankings(body: Buffer) {
  const answer = parseObject(body.toString("utf8"));
  const results = answer?.["results"] ?? answer?.["data"];
  if (answer?.["error"] && !results) throwParsedError(answer as JsonObject);
  if (!answer || !Array.isArray(results))
    return fail("upstream", "The provider returned no ranking.", { code: "bad_answer" });
  return { answer, rows: asList(results).map(parseRankedDocument) };
}

/**
 * Passthrough mode: forwards a backend's bytes if the results are sorted and contain the fields
 * that the client requested. If documents are missing, unwanted, or too many, the ranking is
 * encoded again and all other members are kept.
 */
export function createPassthrough(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  return createResponsePassthrough(
    sink,
    (body) => {
      const { answer, rows } = parseRankings(body);
      const seen = usageOf(answer);
      const id = asText(answer["id"]);
      if (id !== undefined) sink.reportStart(id);
      // The input is billed even if the ranking turns out to be invalid.
      sink.reportUsage({ type: "usage", usage: seen });
      const wish = readRankingExpectation(to.body);
      const due = validateRanking(rows, wish);
      sink.reportContent();
      const usage = { ...seen, ...sink.reportFinish("stop") };
      const inOrder = due.length === rows.length && due.every((one, i) => one === rows[i]);
      if (inOrder && hasRequestedDocuments(answer["results"], wish))
        return replaceModelName(body, to.model, (b) => sink.write(b));
      const anew: JsonObject = {
        id: to.id,
        meta: metaTo(usage),
        usage: tokensTo(usage),
        ...answer,
        model: to.model,
        results: due.map(({ index, score }) => ({
          index,
          relevance_score: score,
          ...(wish.returnDocuments && { document: toDocumentObject(wish.documents[index]) }),
        })),
      };
      return writeJson(sink, anew);
    },
    openaiFaultBody(to),
  );
}

/** Whether the results contain documents exactly if the client requested them. */
const hasRequestedDocuments = (
  results: Json | undefined,
  { returnDocuments }: RankingExpectation,
): boolean =>
  Array.isArray(results) &&
  asList(results).every(
    (row) => isObject(row) && (row["document"] !== undefined) === returnDocuments,
  );
