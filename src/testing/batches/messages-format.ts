// Anthropic's message batches: the lines are sent in the request, and the results are one file.
import type { JsonObject } from "../../model/values.ts";
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import type { BatchFormat, FakeBatch, WrittenResult } from "./batch-format.ts";

/** Anthropic's message batches. */
export const messageBatchFormat: BatchFormat = {
  paths: ["/messages/batches"],
  fails: false,
  handle(state, { method, route, query, body }) {
    const [, , , id = "", action = ""] = route.split("/");
    if (id === "" && method === "POST") {
      const { requests } = JSON.parse(body.toString()) as { requests: Submitted[] };
      const lines = requests.map(({ custom_id, params }) => ({
        id: custom_id,
        url: "/v1/messages",
        body: params,
      }));
      if (lines.some((line) => !/^[a-zA-Z0-9_-]{1,64}$/.test(line.id)))
        return rejected("A custom_id is not valid.");
      return jsonResponse(
        render(state.create({ key: undefined, input: undefined, endpoint: undefined, lines })),
      );
    }
    if (id === "") {
      const all = state.batches.toReversed();
      const after = query.get("after_id");
      const from = after === null ? 0 : all.findIndex((batch) => batch.id === after) + 1;
      const page = all.slice(from, from + Number(query.get("limit") ?? 20));
      return jsonResponse({
        data: page.map(render),
        has_more: from + page.length < all.length,
        first_id: page[0]?.id ?? null,
        last_id: page.at(-1)?.id ?? null,
      });
    }
    if (action === "cancel" && !state.cancel(id)) return rejected("The batch has ended.");
    const batch = state.batches.find((one) => one.id === id);
    if (!batch) return rejected("No such batch.", 404);
    if (action === "results")
      return batch.state === "ended"
        ? { headers: { "content-type": "application/x-jsonl" }, body: resultFile(batch) }
        : rejected("The batch has not ended.");
    if (method === "DELETE") {
      if (batch.state !== "ended") return rejected("The batch has not ended.");
      state.delete(id);
      return jsonResponse({ id, type: "message_batch_deleted" });
    }
    return jsonResponse(render(method === "GET" ? state.advance(id)! : batch));
  },
};

interface Submitted {
  readonly custom_id: string;
  readonly params: JsonObject;
}

const rejected = (message: string, status = 400): ScriptedResponse =>
  jsonResponse({ type: "error", error: { type: "invalid_request_error", message } }, status);

const time = (seconds: number): string => new Date(seconds * 1000).toISOString();

function render(batch: FakeBatch): JsonObject {
  const { id, state, outcome, lines, createdAt } = batch;
  const count = (type: string) => batch.results.filter((one) => typeOf(one) === type).length;
  const hasEnded = state === "ended";
  return {
    id,
    type: "message_batch",
    processing_status: state === "running" ? "in_progress" : state,
    created_at: time(createdAt),
    expires_at: time(createdAt + 24 * 3600),
    ended_at: hasEnded ? time(createdAt + 60) : null,
    cancel_initiated_at: state === "canceling" || outcome === "canceled" ? time(createdAt) : null,
    archived_at: null,
    request_counts: {
      processing: hasEnded ? 0 : lines.length,
      succeeded: count("succeeded"),
      errored: count("errored"),
      canceled: count("canceled"),
      expired: count("expired"),
    },
    results_url: hasEnded ? `https://api.anthropic.com/v1/messages/batches/${id}/results` : null,
  };
}

function typeOf({ answer }: WrittenResult): string {
  if (typeof answer !== "object") return answer;
  return (answer.status ?? 200) < 300 ? "succeeded" : "errored";
}

const resultFile = ({ results }: FakeBatch): string =>
  results
    .map((result) => {
      const type = typeOf(result);
      const body = typeof result.answer === "object" ? result.answer.body : undefined;
      return `${JSON.stringify({
        custom_id: result.line.id,
        result: {
          type,
          ...(type === "succeeded" && { message: body }),
          ...(type === "errored" && { error: body }),
        },
      })}\n`;
    })
    .join("");
