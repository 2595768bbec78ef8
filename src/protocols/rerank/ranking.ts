// What was ranked, and how it is told: sorted by score, the first of equals first. A ranking that names a document which is not
// there, or one twice, is no answer.
import { fail } from "../../model/error.ts";
import type { Ranking } from "../../model/request.ts";
import type { Body, Json, JsonObject, Opt } from "../../model/values.ts";
import { flag, isObject, list, number, object, present } from "../json.ts";

/** What a client is owed. */
export interface RankingWish {
  readonly documents: readonly Json[];
  readonly most: number;
  readonly returned: boolean;
}

export function rankingWish(body: Body): RankingWish {
  const documents = list(body["documents"]);
  const most = number(body["top_n"]) ?? number(body["top_k"]);
  return {
    documents,
    // More than there are is no error.
    most: Math.min(most ?? documents.length, documents.length),
    returned: flag(body["return_documents"]) ?? false,
  };
}

/** A row of a host's answer. */
export function rankingOf(row: unknown): Ranking {
  const said = object(row);
  const index = number(said?.["index"]);
  const score = number(said?.["relevance_score"]) ?? number(said?.["score"]);
  if (index === undefined || score === undefined)
    return fail("upstream", "The provider's ranking has no index or no score.", {
      code: "bad_answer",
    });
  return { index, score };
}

/** Throws what makes a ranking no answer to this request. */
export function ranked(said: readonly Ranking[], wish: RankingWish): readonly Ranking[] {
  const seen = new Set<number>();
  for (const { index } of said) {
    if (!Number.isInteger(index) || index < 0 || index >= wish.documents.length || seen.has(index))
      fail("upstream", `The provider ranked a document ${index} that is not there, or twice.`, {
        code: "bad_ranking",
      });
    seen.add(index);
  }
  if (said.length < wish.most)
    fail("upstream", `The provider ranked ${said.length} documents of ${wish.most}.`, {
      code: "bad_ranking",
    });
  return said.toSorted((a, b) => b.score - a.score || a.index - b.index).slice(0, wish.most);
}

/** As clients read a document: an object with its text. */
export const documentTo = (document: Opt<Json>): JsonObject =>
  isObject(document) ? document : present({ text: document });
