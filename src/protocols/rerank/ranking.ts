// Checks and sorts rankings. Results are sorted by score, and equal scores by index. A ranking is
// invalid if it contains an unknown document or the same document twice.
import { fail } from "../../model/error.ts";
import type { RankedDocument } from "../../model/request.ts";
import type { Body, Json, JsonObject, Opt } from "../../model/values.ts";
import { asBoolean, isObject, asList, asNumber, asObject, omitUndefined } from "../json-values.ts";

/** The results that the client expects. */
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
    // A `top_n` above the number of documents is allowed.
    topN: Math.min(most ?? documents.length, documents.length),
    returnDocuments: asBoolean(body["return_documents"]) ?? false,
  };
}

/** Parses one row of a backend's response. */
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

/**
 * Returns the sorted ranking, cut to `topN`. Throws if the ranking is not a valid response to this
 * request.
 */
export function validateRanking(
  rankings: readonly RankedDocument[],
  wish: RankingExpectation,
): readonly RankedDocument[] {
  const seen = new Set<number>();
  for (const { index } of rankings) {
    if (!Number.isInteger(index) || index < 0 || index >= wish.documents.length || seen.has(index))
      fail(
        "upstream",
        `The provider ranked document ${index}, which does not exist or was already ranked.`,
        {
          code: "bad_ranking",
        },
      );
    seen.add(index);
  }
  if (rankings.length < wish.topN)
    fail("upstream", `The provider ranked ${rankings.length} of ${wish.topN} documents.`, {
      code: "bad_ranking",
    });
  return rankings.toSorted((a, b) => b.score - a.score || a.index - b.index).slice(0, wish.topN);
}

/** Returns a document in the form that clients read: an object with a `text` member. */
export const toDocumentObject = (document: Opt<Json>): JsonObject =>
  isObject(document) ? document : omitUndefined({ text: document });
