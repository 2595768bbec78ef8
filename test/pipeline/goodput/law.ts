// Checks of one pattern and setup: goodput, load, and types of rejections.
import { PATTERNS } from "./patterns.ts";
import { direct, gateway, type Load, type Upstreams } from "./simulation.ts";

export const SHAPES: readonly (Partial<Load> & Pick<Load, "targets" | "processes">)[] = [
  { targets: 1, processes: 1 },
  { targets: 2, processes: 2 },
  { targets: 1, processes: 2, rates: { a: 20 } },
  { targets: 5, processes: 1 },
  { targets: 1, processes: 4, rates: { a: 300, b: 100 } },
  { targets: 2, processes: 1, rates: { a: 20 } },
];

const LOST = 0.01;
const CALLS = 1.1;
/** The only two that make no call. */
const REFUSALS = /^(?:Error: No\.|no_healthy_upstream|rate_limit_exceeded)$/;

export const load = (more: Partial<Load> = {}): Load => ({
  requests: 10_000,
  rates: { a: 12, b: 5, c: 3 },
  targets: 1,
  processes: 1,
  seed: 1,
  ...more,
});

/** Violations of the gateway, in words. */
export async function judged(of: Load, upstreams: Upstreams): Promise<string[]> {
  const [without, through] = [await direct(of, upstreams), await gateway(of, upstreams)];
  const { goodput, calls, asked, told } = through;
  const wrong: string[] = [];
  if (goodput < without.goodput - LOST)
    wrong.push(`${goodput} of the requests succeed, and ${without.goodput} when sent directly`);
  if (calls > CALLS * asked) wrong.push(`${calls} calls for ${asked} requests`);
  for (const code of Object.keys(told))
    if (!REFUSALS.test(code)) wrong.push(`${told[code]} requests were refused with ${code}`);
  return wrong;
}

export { PATTERNS };
