// An answer that Cohere's clients read, and Jina's: what the one looks for does not disturb the other.
import type { ModelAnswer } from "../../../model/event.ts";
import type { Ranking } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { documentTo, ranked, rankingWish } from "../ranking.ts";
import { metaTo, tokensTo } from "../usage.ts";

type To = Pick<AnswerContext, "body" | "id" | "model">;

export const whole = (answer: ModelAnswer, to: To): JsonObject => ({
  id: answer.id ?? to.id,
  model: to.model,
  results: rowsTo(answer, to),
  meta: metaTo(answer.usage),
  usage: tokensTo(answer.usage),
});

/** The same in Voyage's words. */
export const voyageWhole = (answer: ModelAnswer, to: To): JsonObject => ({
  object: "list",
  data: rowsTo(answer, to).map(({ document, ...row }) =>
    document === undefined ? row : { ...row, document: (document as JsonObject)["text"] },
  ),
  model: to.model,
  usage: tokensTo(answer.usage),
});

function rowsTo({ items = [] }: ModelAnswer, { body }: To): readonly JsonObject[] {
  const wish = rankingWish(body);
  return ranked(items as readonly Ranking[], wish).map(({ index, score }) => ({
    index,
    relevance_score: score,
    ...(wish.returned && { document: documentTo(wish.documents[index]) }),
  }));
}
