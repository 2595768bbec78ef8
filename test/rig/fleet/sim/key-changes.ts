// Changes of keys at one gateway of a fleet, on virtual time: how long it takes until each other
// gateway learns of them, whatever it writes in the meantime.
import { reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { createChance } from "../../rig.ts";
import type { SimulatedDatabase } from "./database.ts";
import { Gateway } from "./gateway.ts";
import { Server } from "./server.ts";
import { VirtualTime } from "./virtual-time.ts";

const GATEWAYS = 3;
/** Time after which a change counts as not reported, in virtual milliseconds. */
const LOST_MS = 60_000;

/** Returns the longest time from an acknowledged change to its report, in virtual milliseconds. */
export async function slowestKeyChange(
  database: SimulatedDatabase,
  of: { readonly seed: number; readonly changes: number },
): Promise<number> {
  database.clear();
  const time = new VirtualTime();
  const chance = createChance(of.seed);
  const restore = time.install(createChance(of.seed + 1));
  try {
    const server = new Server(time, database, createChance(of.seed + 2));
    const settings = { leaseMs: 3_000, durability: "flushed", leaseThreshold: 0 } as const;
    const gateways = Array.from(
      { length: GATEWAYS },
      (_, i) => new Gateway(`m${i}`, { ...settings, offline: undefined }, server, time),
    );
    for (const gateway of gateways) gateway.start();
    await time.until(() => gateways.every(({ ledger }) => ledger), 5_000);
    let slowest = 0;
    for (let n = 0; n < of.changes; n++) {
      const [first, ...others] = gateways.map((_, i) => gateways[(i + n) % GATEWAYS]!);
      for (let calls = chance.below(4); calls > 0; calls--) {
        await time.pass(chance() * 500);
        call(time, chance.one(others), `c${n}.${calls}`);
      }
      await time.pass(chance() * 1_500);
      const before = others.map((gateway) => changesSeenBy(gateway));
      let isWritten = false;
      time.as(first!.process, () => {
        const key = { id: `k${n}`, digest: `d${n}`, created: 1, revoked: 2 };
        void first!.ledger!.writeKey(key).then(() => (isWritten = true));
      });
      await time.until(() => isWritten, LOST_MS);
      const began = time.now;
      if (chance.often(0.5)) call(time, chance.one(others), `after${n}`);
      await time.until(
        () => others.every((gateway, i) => changesSeenBy(gateway) > before[i]!),
        LOST_MS,
      );
      slowest = Math.max(slowest, time.now - began);
    }
    return slowest;
  } finally {
    restore();
  }
}

const changesSeenBy = ({ news }: Gateway): number =>
  news.filter(({ type }) => type === "keys_changed").length;

function call(time: VirtualTime, gateway: Gateway, attempt: string): void {
  time.as(gateway.process, () => {
    const at = Date.now();
    const { ledger } = gateway;
    void ledger!
      .reserve(reserveCommand(attempt, { at, claims: [] }))
      .then(() => ledger!.settle(settleCommand(attempt, { at })));
  });
}
