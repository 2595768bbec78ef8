// The readings of a whole gateway, in its primary: its own, those of other processes, and what there is one of whatever processes
// there are.
import type { Refresh } from "../../catalogue/refresh.ts";
import type { GenerationSlot } from "../generation/slot.ts";
import type { Services } from "../services/services.ts";
import { fleetReading } from "../services/fleet.ts";
import { sizeOf } from "../services/store.ts";
import { AllReadings, type PrimarySource, type ReadingSource } from "./all.ts";
import { certificateReader } from "./certificates.ts";
import { OwnReader } from "./own.ts";

interface Primary {
  readonly version: string;
  readonly services: Services;
  readonly stage: GenerationSlot;
  readonly refresh: Refresh;
}

export const readingAll = (of: Primary, sources: () => readonly ReadingSource[]): AllReadings =>
  new AllReadings(new OwnReader(of.services, of.stage), primary(of), sources);

const primary = ({ version, services, stage, refresh }: Primary): PrimarySource => ({
  read() {
    const { built, at } = stage.current;
    const lists = refresh.status();
    return {
      version,
      state: stage.state,
      generation: { number: built.gen.number, at },
      lists: lists.map(({ provider, credential, lastOk, failures }) => ({
        provider,
        credential,
        lastOk,
        failures,
      })),
    };
  },
  commits: () => services.commits.read(),
  trouble: () => services.health.trouble?.why,
  size: () => sizeOf(services.store),
  fleet: () => fleetReading(services),
  certificates: certificateReader(() => stage.current.config),
});
