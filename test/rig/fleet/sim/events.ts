// Random events in a simulation: calls of clients, and faults. A fault ends by itself.
import type { Chance } from "../../rig.ts";
import type { Gateway, GatewaySettings } from "./gateway.ts";
import type { Server } from "./server.ts";

/** Effects that an event can have. */
export interface Events {
  readonly chance: Chance;
  readonly of: GatewaySettings;
  readonly all: readonly Gateway[];
  readonly server: Server;
  any(): Gateway;
  call(of: Gateway, more?: { twice?: boolean }): void;
  later(ms: number, run: () => void): void;
  resume(gateway: Gateway): void;
  kill(gateway: Gateway): void;
  stepClock(ms: number): void;
  copy(): void;
  fail(ms: number): void;
}

/** Duration of a fault: shorter or longer than a lease. */
const lasting = ({ chance: chanced, of }: Events): number =>
  chanced.one([100, 1_000, of.leaseMs * 0.7, of.leaseMs * 1.5, of.leaseMs * 2.5]);

/** Each with its share of all events. */
export const EVENTS: Readonly<Record<string, readonly [share: number, run: (on: Events) => void]>> =
  {
    calls: [
      20,
      (on) => {
        const of = on.any();
        for (let i = on.chance.below(5); i >= 0; i--) on.call(of);
      },
    ],
    "calls at all gateways": [
      20,
      (on) => {
        for (const of of on.all) for (let i = on.chance.below(4); i >= 0; i--) on.call(of);
      },
    ],
    "calls told twice": [6, (on) => on.call(on.any(), { twice: true })],
    wait: [4, () => {}],
    kill: [
      4,
      (on) => {
        const of = on.any();
        if (!of.process.alive) return;
        on.kill(of);
        on.later(on.chance.one([50, 1_000, 5_000, 9_000]), () => {
          if (!of.process.alive) of.start();
        });
      },
    ],
    pause: [
      5,
      (on) => {
        const of = on.any();
        of.process.paused = true;
        on.later(lasting(on), () => on.resume(of));
      },
    ],
    cut: [
      6,
      (on) => {
        const { link } = on.any();
        link.cut = true;
        on.later(lasting(on), () => on.server.mend(link));
      },
    ],
    restart: [3, (on) => on.server.restart(on.chance.one([50, lasting(on), lasting(on)]))],
    silence: [3, (on) => on.server.silence(lasting(on))],
    full: [
      2,
      (on) => {
        on.server.isFull = true;
        on.later(lasting(on), () => void (on.server.isFull = false));
      },
    ],
    "clock of a gateway": [
      2,
      (on) =>
        void (on.any().process.clockOffset += on.chance.one([
          -3_600_000, -5_000, 5_000, 3_600_000,
        ])),
    ],
    "clock of the database": [1, (on) => on.stepClock(on.chance.one([-2_000, -200, 200, 2_000]))],
    copy: [1, (on) => on.copy()],
    failover: [1, (on) => on.fail(on.chance.one([50, 1_000, 5_000]))],
  };
