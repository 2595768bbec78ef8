// The other side of the threads: one writes, one reads, and one is there while a ledger is copied or cut. Messages in, messages out, in the order in which they came.
import { parentPort, workerData } from "node:worker_threads";
import { faultOf } from "tollgate/plugin";
import { Keeper } from "./keeper.ts";
import { Reader } from "./reader.ts";
import type { Settings } from "./session.ts";
import { Writer } from "./writer.ts";

/** What a thread is made with. */
export type Role =
  | { role: "writer"; settings: Settings; instance: string }
  | { role: "reader" | "keeper"; settings: Pick<Settings, "file"> };

export interface Asked {
  id: number;
  method: string;
  args: readonly unknown[];
  /** It asks between its strides whether it is still wanted. */
  long: boolean;
}
export type Answered = { id: number } & (
  | { value: unknown }
  | { message: string; fault: ReturnType<typeof faultOf> }
);

/** The answer is not wanted any more. */
export interface Dropped {
  drop: number;
}

const port = parentPort!;
/** What is read now, and whether it is still wanted. */
const reading = new Map<number, { wanted: boolean }>();
const data = workerData as Role;
/** The first question is `start`: what goes wrong then is its answer. */
let service: Writer | Reader | Keeper | undefined;

async function answer({ id, method, args, long }: Asked): Promise<Answered> {
  try {
    if (method === "start") {
      service =
        data.role === "writer"
          ? new Writer(data.settings, data.instance)
          : data.role === "reader"
            ? new Reader(data.settings)
            : new Keeper(data.settings);
      return { id, value: "opened" in service ? service.opened : undefined };
    }
    const of = service as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
    const still = { wanted: true };
    if (long) reading.set(id, still);
    const value = await (long ? of[method]!(...args, still) : of[method]!(...args));
    if (method === "close") port.close();
    return { id, value };
  } catch (error) {
    const fault = faultOf(error);
    // The cause may be anything; what crosses is plain.
    return {
      id,
      message: (error as Error).message,
      fault: fault && { ...fault, cause: undefined },
    };
  } finally {
    reading.delete(id);
  }
}

port.on("message", async (asked: Asked | Dropped) => {
  if ("id" in asked) return port.postMessage(await answer(asked));
  const still = reading.get(asked.drop);
  if (still) still.wanted = false;
});
