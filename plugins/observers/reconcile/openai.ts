// Reads the costs and the usage of an OpenAI organization. Costs are per day, project, and line item.
// A line item is text such as "gpt-5-2025-08-07, cached input", "priority | gpt-5.6-sol, output, long
// context", or "web search tool calls". Costs without a quantity take their counts from the usage.
import type { Unit } from "tollgate/plugin";
import { parseCount, parsePico, type BillLine } from "./bill-line.ts";
import { dayOf } from "./bill-line.ts";
import { readPages, type BillApi, type BillPeriod } from "./bill-api.ts";

interface CostResult {
  readonly amount?: { readonly value?: Digits; readonly currency?: string } | null;
  readonly line_item?: string | null;
  readonly project_id?: string | null;
  readonly quantity?: Digits | null;
}
interface UsageResult {
  readonly input_tokens?: Digits;
  readonly input_cached_tokens?: Digits;
  readonly input_audio_tokens?: Digits;
  readonly output_tokens?: Digits;
  readonly output_audio_tokens?: Digits;
  readonly num_model_requests?: Digits;
  readonly project_id?: string | null;
  readonly api_key_id?: string | null;
  readonly model?: string | null;
}
interface Bucket<R> {
  readonly start_time: Digits;
  readonly results: readonly R[];
}
/** A number as its original text, because floats are not exact. */
interface Digits {
  readonly digits: string;
}

export async function* readOpenaiBill(
  api: BillApi,
  period: BillPeriod,
): AsyncGenerator<BillLine, void> {
  const range = {
    start_time: String(period.from / 1_000),
    end_time: String(period.to / 1_000),
    bucket_width: "1d",
  };
  const counted = new Set<string>();
  const costs = { ...range, limit: "180", "group_by[]": ["project_id", "line_item"] };
  for await (const bucket of readPages<Bucket<CostResult>>(api, "/v1/organization/costs", costs)) {
    const day = dayOf(Number(bucket.start_time.digits) * 1_000);
    for (const [i, result] of bucket.results.entries()) {
      const text = result.line_item ?? "";
      const item = parseLineItem(text);
      if (item?.unit !== undefined && result.quantity) counted.add(`${day} ${item.model}`);
      yield {
        id: `costs ${day} ${i + 1}`,
        day,
        model: item?.model,
        project: result.project_id ?? undefined,
        key: undefined,
        unit: item?.unit,
        count:
          item?.unit !== undefined && result.quantity
            ? parseCount(result.quantity.digits)
            : undefined,
        pico: requireUsd(result.amount),
        description: text,
      };
    }
  }
  const usage = { ...range, limit: "31", "group_by[]": ["project_id", "api_key_id", "model"] };
  for await (const bucket of readPages<Bucket<UsageResult>>(
    api,
    "/v1/organization/usage/completions",
    usage,
  )) {
    const day = dayOf(Number(bucket.start_time.digits) * 1_000);
    for (const [i, result] of bucket.results.entries()) {
      if (result.model == null) continue;
      const known = {
        id: `usage ${day} ${i + 1}`,
        day,
        model: result.model,
        project: result.project_id ?? undefined,
        key: result.api_key_id ?? undefined,
        pico: undefined,
        description: "usage",
      };
      for (const [unit, count] of countsOf(result))
        if (count > 0n) {
          const isShare = unit !== "calls" && counted.has(`${day} ${result.model}`);
          yield { ...known, unit, count, ...(isShare && { isShare }) };
        }
    }
  }
}

/** Cached, audio, and text tokens are parts of the input in this API. */
function countsOf(of: UsageResult): readonly (readonly [Unit | "calls", bigint])[] {
  const count = (digits: Digits | undefined) => (digits ? parseCount(digits.digits) : 0n);
  const [cached, audioIn, audioOut] = [
    count(of.input_cached_tokens),
    count(of.input_audio_tokens),
    count(of.output_audio_tokens),
  ];
  return [
    ["input", count(of.input_tokens) - cached - audioIn],
    ["cache_read", cached],
    ["audio_in", audioIn],
    ["output", count(of.output_tokens) - audioOut],
    ["audio_out", audioOut],
    ["calls", count(of.num_model_requests)],
  ];
}

/** Returns the model and the unit of a line item. Undefined for tools, storage, and others. */
export function parseLineItem(
  text: string,
): { readonly model: string; readonly unit: Unit | undefined } | undefined {
  const [, model, modality, direction] =
    /^(?:[a-z ]+ \| )?([\w.:-]+)(?: (text|audio|image))?, ((?:cached |cache write )?input|output|audio|image)\b/i.exec(
      text,
    ) ?? [];
  if (model === undefined) return undefined;
  return { model, unit: UNITS[`${modality ?? "text"} ${direction!}`.toLowerCase()] };
}

const UNITS: Readonly<Record<string, Unit | undefined>> = {
  "text input": "input",
  "text cached input": "cache_read",
  "text output": "output",
  "audio input": "audio_in",
  "audio cached input": "cache_read_audio",
  "audio output": "audio_out",
  "image input": "image_in",
  "image cached input": "cache_read_image",
  "image output": "image_out",
};

function requireUsd(amount: CostResult["amount"]): bigint {
  if (!amount?.value) return 0n;
  if ((amount.currency ?? "usd").toLowerCase() !== "usd")
    throw new Error(
      `OpenAI reports costs in ${amount.currency}, and only US dollars are supported`,
    );
  return parsePico(amount.value.digits);
}
