// Which requests become spans. It is decided when they are over, so a failure is kept whatever the sampler says.
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
  /** A first content that comes later than this is slow. */
  readonly slowMs: number;
}

/** False: no span of it is sent. `always_off` means it; under the others failures, second attempts and what is slow are kept. */
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

/** By the upper bits of the id's lower half, as other samplers of this name do it: all keep the same traces. */
const isInRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(16, 16 + DIGITS), 16) < ratio * 16 ** DIGITS;

function isNoteworthy(record: RequestRecord, slowMs: number): boolean {
  const { outcome, calls, ms } = record;
  if (outcome === "upstream_error" || outcome === "error" || calls.length > 1) return true;
  return (record.firstTokenMs ?? ms) > slowMs;
}
