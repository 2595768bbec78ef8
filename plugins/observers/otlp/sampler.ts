// Decides which requests become spans. The decision is made when a request ends, so failures are
// kept even if the sampler would drop them.
import type { RequestRecord, RequestTrace } from "tollgate/plugin";

export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
export type SamplerName = (typeof SAMPLERS)[number];

export interface SamplerOptions {
  readonly sampler: SamplerName;
  readonly ratio: number;
  /** Requests whose first token takes longer than this are slow. In milliseconds. */
  readonly slowMs: number;
}

/**
 * Returns a function that decides whether a request's spans are sent. With `always_off` none are.
 * All other samplers also keep failures, requests with several calls, and slow requests.
 */
export function createSampler({
  sampler,
  ratio,
  slowMs,
}: SamplerOptions): (of: RequestRecord) => boolean {
  if (sampler === "always_off") return () => false;
  const based = sampler.startsWith("parentbased_");
  const root = based ? sampler.slice("parentbased_".length) : sampler;
  const share = root === "always_on" ? 1 : root === "always_off" ? 0 : ratio;
  const sampled = ({ traceId, sampled }: RequestTrace): boolean =>
    based && sampled !== undefined ? sampled : share === 1 || isInRatio(traceId, share);
  return (record) => sampled(record.trace) || isNoteworthy(record, slowMs);
}

const DIGITS = 13;

/**
 * Compares the upper bits of the trace ID's lower half, as other implementations of this sampler
 * do, so that all keep the same traces.
 */
const isInRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(16, 16 + DIGITS), 16) < ratio * 16 ** DIGITS;

function isNoteworthy(record: RequestRecord, slowMs: number): boolean {
  const { outcome, calls, ms } = record;
  if (outcome === "upstream_error" || outcome === "error" || calls.length > 1) return true;
  return (record.firstTokenMs ?? ms) > slowMs;
}
