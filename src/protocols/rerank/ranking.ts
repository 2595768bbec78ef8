// What was ranked, and how it is told: sorted by score, the first of equals first. A ranking that names a document which is not
// there, or one twice, is no answer.
import { fail } from "../../model/error.ts";
import type { RankedDocument } from "../../model/request.ts";
import type { Body, Json, JsonObject, Opt } from "../../model/values.ts";
import { asBoolean, isObject, asList, asNumber, asObject, omitUndefined } from "../json-values.ts";

/** What a client is owed. */
export interface RankingExpectation {
  readonly documents: readonly Json[];
  readonly topN: number;
  readonly returnDocuments: boolean;
}

export function readRankingExpectation(body: Body): RankingExpectation {
  const documents = asList(body["documents"]);
  const most = asNumber(body["top_n"]) ?? asNumber(body["top_k"]);
  return {
    documents,
    // More than there are is no error.
    topN: Math.min(most ?? documents.length, documents.length),
    returnDocuments: asBoolean(body["return_documents"]) ?? false,
  };
}

/** A row of a host's answer. */
export function parseRankedDocument(row: unknown): RankedDocument {
  const item = asObject(row);
  const index = asNumber(item?.["index"]);
  const score = asNumber(item?.["relevance_score"]) ?? asNumber(item?.["score"]);
  if (index === undefined || score === undefined)
    return fail("upstream", "The provider's ranking has no index or no score.", {
      code: "bad_answer",
    });
  return { index, score };
}

/** Throws what makes a ranking no answer to this request. */
export function validateRanking(
  rankings: readonly RankedDocument[],
  wish: RankingExpectation,
): readonly RankedDocument[] {
  const seen = new Set<number>();
  for (const { index } of rankings) {
    if (!Number.isInteger(index) || index < 0 || index >= wish.documents.length || seen.has(index))
      fail("upstream", `The provider ranked a document ${index} that is not there, or twice.`, {
        code: "bad_ranking",
      });
    seen.add(index);
  }
  if (rankings.length < wish.topN)
    fail("upstream", `The provider ranked ${rankings.length} documents of ${wish.topN}.`, {
      code: "bad_ranking",
    });
  return rankings.toSorted((a, b) => b.score - a.score || a.index - b.index).slice(0, wish.topN);
}

/** As clients read a document: an object with its text. */
export const toDocumentObject = (document: Opt<Json>): JsonObject =>
  isObject(document) ? document : omitUndefined({ text: document });
