// Collects the live stats of the whole gateway in the primary: stats of the primary, of all other
// processes, and of the gateway.
import type { ListRefresher } from "../../catalog/list-refresher.ts";
import type { GenerationSlot } from "../generation/generation-slot.ts";
import type { Services } from "../services.ts";
import { readFleetStats } from "../services/fleet.ts";
import { readStoreSize } from "../ledger/open-store.ts";
import { StatsCollector, type PrimaryStatsSource, type StatsSource } from "./stats-collector.ts";
import { createJobStatsReader } from "./job-stats.ts";
import { createCertificateReader } from "./certificate-stats.ts";
import { LocalStatsReader } from "./process-stats.ts";

interface PrimaryOptions {
  readonly version: string;
  readonly services: Services;
  readonly generations: GenerationSlot;
  readonly listRefresher: ListRefresher;
}

export const createStatsCollector = (
  of: PrimaryOptions,
  sources: () => readonly StatsSource[],
): StatsCollector =>
  new StatsCollector(
    new LocalStatsReader(of.services, of.generations),
    createPrimarySource(of),
    sources,
  );

const createPrimarySource = ({
  version,
  services,
  generations,
  listRefresher,
}: PrimaryOptions): PrimaryStatsSource => ({
  read() {
    const { built, loadedAt } = generations.current;
    const lists = listRefresher.status();
    return {
      version,
      state: generations.state,
      generation: { number: built.gen.number, at: loadedAt },
      modelLists: lists.map(({ provider, credential, lastSuccessAt, failures }) => ({
        provider,
        credential,
        lastSuccessAt,
        failures,
      })),
    };
  },
  readCommits: () => services.commitDurations.read(),
  ledgerFailure: () => services.ledgerAvailability.outage?.reason,
  readStoreSize: () => readStoreSize(services.store),
  readFleet: () => readFleetStats(services),
  readJobs: createJobStatsReader(services),
  readCertificates: createCertificateReader(() => generations.current.config),
});
