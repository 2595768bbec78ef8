// The verbatim lane: a host's bytes pass when they are what the client asked for, in order. A host that returns no documents, or
// more of them than were wanted, has its ranking written anew, with all else that it said.
import type { Fault } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { isObject, list, text } from "../../json.ts";
import { fault } from "../../responses/server/fault.ts";
import { named } from "../../sse/index.ts";
import { documentTo, ranked, rankingWish, type RankingWish } from "../ranking.ts";
import { metaTo, tokensTo, usageOf } from "../usage.ts";
import { rankingsIn } from "./whole.ts";

export function relay(sink: RelaySink, to: AnswerContext): Relay {
  return {
    between: true,
    push(body) {
      const { answer, rows } = rankingsIn(body);
      const seen = usageOf(answer);
      const id = text(answer["id"]);
      if (id !== undefined) sink.start(id);
      // What was read is billed, though its ranking may be no answer.
      sink.usage({ type: "usage", usage: seen });
      const wish = rankingWish(to.body);
      const due = ranked(rows, wish);
      sink.content();
      const usage = { ...seen, ...sink.finish("stop") };
      const inOrder = due.length === rows.length && due.every((one, i) => one === rows[i]);
      if (inOrder && isTold(answer["results"], wish))
        return named(body, to.model, (b) => sink.bytes(b));
      const anew: JsonObject = {
        id: to.id,
        meta: metaTo(usage),
        usage: tokensTo(usage),
        ...answer,
        model: to.model,
        results: due.map(({ index, score }) => ({
          index,
          relevance_score: score,
          ...(wish.returned && { document: documentTo(wish.documents[index]) }),
        })),
      };
      return sink.bytes(Buffer.from(JSON.stringify(anew)));
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(fault(f, to).body)));
    },
  };
}

/** With documents where they were asked for, and without them where they were not. */
const isTold = (results: Json | undefined, { returned }: RankingWish): boolean =>
  Array.isArray(results) &&
  list(results).every((row) => isObject(row) && (row["document"] !== undefined) === returned);
