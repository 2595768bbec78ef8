// A whole answer of Converse.
import { fail } from "tollgate/plugin";
import { listOf, objectOf, parsed, textOf } from "../json.ts";
import type { ConverseReader } from "./reader.ts";

export function decodeResponse(body: Buffer, reading: ConverseReader): void {
  const answer = parsed(body);
  const content = objectOf(objectOf(answer?.["output"])?.["message"])?.["content"];
  if (!answer || !Array.isArray(content))
    return fail("upstream", "The provider's answer has no content.", { code: "bad_answer" });
  reading.start();
  for (const [at, raw] of listOf(content).entries()) {
    const block = objectOf(raw);
    if (block) reading.block(at, block);
  }
  reading.count(answer);
  reading.setStopReason(textOf(answer["stopReason"]) ?? "end_turn");
  reading.end();
}
