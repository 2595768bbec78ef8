// What ends on a date that is known before: what is known of a provider's data policy, and models that retire.
import type { ListedModel, Readings } from "tollgate/plugin";
import type { Happening } from "./alert.ts";

const DAY_MS = 86_400_000;
/** So many days before, each once. */
const STAGES = [1, 7, 30] as const;

/** Undefined: it is far off, or long past. */
function stageOf(date: string | number, now: number): number | undefined {
  const days = (new Date(date).getTime() - now) / DAY_MS;
  return days < -1 ? undefined : STAGES.find((stage) => days <= stage);
}

export function* ofDates(models: readonly ListedModel[], now: number): Generator<Happening> {
  for (const { id, provider, retires, policy } of models) {
    const retiring = retires ? stageOf(retires, now) : undefined;
    if (retiring !== undefined)
      yield {
        type: "model.retires",
        at: now,
        subject: `model:${id}`,
        once: [id, retires!, retiring],
        facets: { provider, model: id },
        data: { model: id, provider, date: retires! },
      };
    const expiring = policy.expires ? stageOf(policy.expires, now) : undefined;
    // One word for all models of a provider that stand on the same evidence.
    if (expiring !== undefined)
      yield {
        type: "policy.expires",
        at: now,
        subject: `provider:${provider}`,
        once: [provider, policy.expires!, expiring],
        facets: { provider },
        data: { provider, date: policy.expires!, basis: policy.basis },
      };
  }
}

/** Of the gateway's own listeners. A certificate that was renewed is another one. */
export function* ofCertificates(all: Readings["certificates"], now: number): Generator<Happening> {
  for (const { listener, expiresAt } of all) {
    const stage = stageOf(expiresAt, now);
    if (stage === undefined) continue;
    yield {
      type: "certificate.expires",
      at: now,
      subject: `certificate:${listener}`,
      once: [listener, expiresAt, stage],
      facets: {},
      data: { listener, date: new Date(expiresAt).toISOString() },
    };
  }
}
