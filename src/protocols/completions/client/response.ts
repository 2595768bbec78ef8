// Decodes a non-streaming response into events.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { usageOf } from "../usage.ts";
import { parseResponseObject, parseChoices } from "./parse-response.ts";

export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const answer = parseResponseObject(body.toString("utf8"));
  if (asList(answer["choices"]).length === 0)
    return fail("upstream", "The provider returned no choice.", { code: "bad_answer" });
  const { text: words, reason = "stop" } = parseChoices(answer);
  emit(omitUndefined({ type: "start" as const, id: asText(answer["id"]) }));
  emit({ type: "open", index: 0, block: { type: "text" } });
  if (words !== "") emit({ type: "delta", index: 0, text: words });
  emit({ type: "close", index: 0 });
  emit({ type: "usage", usage: usageOf(asObject(answer["usage"])) });
  emit({ type: "finish", reason });
}
