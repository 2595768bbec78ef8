// Corrects usage reports in passthrough mode. Some backends omit reasoning from the completion
// count or caches from the prompt count. The client must receive the counts that the ledger prices,
// so the counts are replaced. Other members of the report are kept.
import type { JsonObject, Usage } from "../../../plugin/index.ts";
import { encodeKey, findValue } from "../../sse/index.ts";
import { usageTo } from "../usage.ts";
import { asObject } from "../../json-values.ts";

const TOTAL_FIELDS = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;
const DETAILS = ["prompt_tokens_details", "completion_tokens_details"] as const;
const USAGE = [encodeKey("usage")];

/**
 * Returns the provider's report with the gateway's counts. Returns undefined if both agree, or if
 * the report is not where clients expect it.
 */
export function correctedUsage(answer: JsonObject, usage: Usage): JsonObject | undefined {
  const raw = asObject(answer["usage"]);
  const ours = usageTo(usage);
  if (!raw || TOTAL_FIELDS.every((name) => raw[name] === ours[name])) return undefined;
  const usageReport: Record<string, JsonObject[string]> = { ...raw, ...ours };
  for (const name of DETAILS) {
    const [theirs, better] = [asObject(raw[name]), asObject(ours[name])];
    if (theirs && better) usageReport[name] = { ...theirs, ...better };
  }
  return usageReport;
}

/**
 * Returns the text with a different usage report.
 *
 * @param json Offset at which the JSON object begins.
 */
export function withUsage(b: Buffer, json: number, usage: JsonObject): Buffer {
  const at = findValue(b, USAGE, json);
  return at
    ? Buffer.concat([b.subarray(0, at.from), Buffer.from(JSON.stringify(usage)), b.subarray(at.to)])
    : b;
}
