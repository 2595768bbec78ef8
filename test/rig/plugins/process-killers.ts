// Broken plugins that end their process. With two workers, the other one serves until the new one
// starts. A single process ends, and its supervisor restarts it. In both cases the log states the
// reason, and clients that retry are served.
import { setTimeout as sleep } from "node:timers/promises";
import type { Daemon } from "../../kit/process/daemon.ts";
import { askBroken, pidsOf, statusOf } from "./stage.ts";
import { DEADLY, type Deadly, type Ending } from "./failure-modes.ts";

/** Each on its own connection, so that every worker gets some. */
const SAMPLE = 6;

type Lines = Daemon["log"];

/** Whether it happened within this time. */
async function comes(patienceMs: number, so: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50))
    if (await so()) return true;
  return so();
}

/** One of two workers gets the request, and ends. */
export async function ofTwo(
  at: Daemon,
  how: Deadly,
  patienceMs: number,
  wrong: string[],
): Promise<void> {
  const ending: Ending = DEADLY[how];
  const before = await statusOf(at);
  const from = at.log.length;
  const asked = askBroken(at, `${how}/m`, false);
  const replaced = await comes(patienceMs, async () => {
    if (!at.log.slice(from).some(({ msg }) => msg === "worker replaced")) return false;
    const now = await statusOf(at);
    return now.workers!.length === before.workers!.length && pidsOf(now) !== pidsOf(before);
  });
  if (!replaced) return void wrong.push(`${how}: no other worker has taken its place`);
  const ended = () => at.log.slice(from).find(({ msg }) => msg.startsWith("worker exited"));
  await comes(patienceMs, () => ended() !== undefined);
  if (!ending.worker.test(String(ended()?.["exitReason"])))
    wrong.push(`${how}: the worker has ended by ${String(ended()?.["exitReason"])}`);
  wrong.push(...told(how, ending, at.log.slice(from)), ...client(how, ending, await asked));
  if ((await statusOf(at)).pid !== before.pid) wrong.push(`${how}: the gateway itself has ended`);
  const sample = await Promise.all(
    Array.from({ length: SAMPLE }, () => askBroken(at, "chat/model", false)),
  );
  const [well, by] = [
    sample.filter(({ status }) => status === 200).length,
    new Set(sample.map((each) => each.by)).size,
  ];
  if (well < SAMPLE || by < before.workers!.length)
    wrong.push(`${how}: after it ${well} of ${SAMPLE} were served, by ${by} workers`);
}

/** A single process gets the request, and ends. Its supervisor restarts it. */
export async function alone(
  at: Daemon,
  how: Deadly,
  patienceMs: number,
  again: () => Promise<Daemon>,
  wrong: string[],
): Promise<Daemon> {
  const ending: Ending = DEADLY[how];
  const from = at.log.length;
  const asked = askBroken(at, `${how}/m`, false);
  let over: Awaited<Daemon["exit"]> | undefined;
  void at.exit.then((exit) => (over = exit));
  if (!(await comes(patienceMs, () => over !== undefined))) {
    wrong.push(`${how}, alone: the process has not ended`);
    await at.stop("SIGKILL");
  } else {
    const said = over!.signal ?? `exit code ${over!.code}`;
    if (!ending.alone.test(said)) wrong.push(`${how}, alone: it has ended by ${said}`);
    wrong.push(...told(`${how}, alone`, ending, at.log.slice(from)));
    wrong.push(...client(`${how}, alone`, ending, await asked));
  }
  const next = await again();
  const { status } = await askBroken(next, "chat/model", false);
  if (status !== 200) wrong.push(`${how}, alone: after the start ${status}`);
  return next;
}

function told(name: string, { line, at }: Ending, lines: Lines): string[] {
  const found = lines.find(({ msg }) => line.test(msg));
  // A process that ends without a log line is reported by the primary, or by its exit code.
  if (!found) return line.source === "." ? [] : [`${name}: no line says ${line}`];
  if (!at) return [];
  const [place] = (found["at"] as readonly string[] | undefined) ?? [];
  const whose = (found["requests"] as readonly string[] | undefined) ?? [];
  return at.test(place ?? "") && whose.length > 0
    ? []
    : [`${name}: it stood at ${place ?? "no place"}, for ${whose.join(" ") || "no request"}`];
}

function client(
  name: string,
  ending: Ending,
  { status, text }: { status: number; text: string },
): string[] {
  const expected = ending.client === "answered" ? 200 : 0;
  return status === expected ? [] : [`${name}: its own client got ${status} ${text.slice(0, 200)}`];
}
