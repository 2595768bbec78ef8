// The other side of the threads: one writes, one reads. Messages in, messages out, in the order in which they came.
import { parentPort, workerData } from "node:worker_threads";
import { faultOf } from "tollgate/plugin";
import { createReader, type Reader } from "./reader.ts";
import { createWriter, type Settings, type Writer } from "./writer.ts";

/** What a thread is made with. */
export type Role =
  | { role: "writer"; settings: Settings; instance: string }
  | { role: "reader"; settings: Settings };

export interface Asked {
  id: number;
  method: string;
  args: readonly unknown[];
}
export type Answered = { id: number } & (
  | { value: unknown }
  | { message: string; fault: ReturnType<typeof faultOf> }
);

const port = parentPort!;
const data = workerData as Role;
/** The first question is `start`: whatever goes wrong then has somebody to hear of it. */
let service: Writer | Reader | undefined;

async function answer({ id, method, args }: Asked): Promise<Answered> {
  try {
    if (method === "start") {
      service =
        data.role === "writer"
          ? createWriter(data.settings, data.instance)
          : createReader(data.settings);
      return { id, value: "opened" in service ? service.opened : undefined };
    }
    const work = (service as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[
      method
    ];
    const value = await work!(...args);
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
  }
}

port.on("message", async (asked: Asked) => port.postMessage(await answer(asked)));
