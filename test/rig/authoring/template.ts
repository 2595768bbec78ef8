// Each kind and form of `tollgate new`, from the start: created, installed, tested, and checked in
// a clean folder, packed, and mounted from its tarball by an operator.
import { KINDS } from "./template-kinds.ts";
import { answered } from "./mounted-package.ts";
import { begun, packed, proved, workshop } from "./clean-install.ts";
import type { Rig } from "../rig.ts";

export const rig: Rig = {
  options: { only: "", seconds: 60 },
  async run({ only = "", seconds = "60" }, say) {
    using at = await workshop();
    const wrong: string[] = [];
    let slowest = 0;
    const wanted = KINDS.filter(({ words }) => words.join(" ").includes(only));
    for (const [i, kind] of wanted.entries()) {
      const name = kind.words.filter((word) => word !== "acme" && word !== "--template").join(" ");
      try {
        const folder = await begun(at, kind.words, `made-${i}`);
        const took = await proved(folder);
        const total = Object.values(took).reduce((sum, each) => sum + each, 0);
        slowest = Math.max(slowest, total);
        if (total > Number(seconds)) wrong.push(`${name}: ${total.toFixed(0)} s`);
        const { text, calls } = await answered(at, kind, await packed(at, folder));
        if (calls !== 1) wrong.push(`${name}: the ledger has ${calls} calls`);
        const each = Object.entries(took).map(([what, s]) => `${what} ${s.toFixed(1)} s`);
        say(
          `${name.padEnd(22)} ${total.toFixed(1).padStart(5)} s  ${each.join(", ")}; says ${text}`,
        );
      } catch (error) {
        wrong.push(`${name}: ${String(error)}`);
        say(`${name}: ${String(error)}`);
      }
    }
    return {
      wrong,
      counts: { kinds: wanted.length, slowest: `${slowest.toFixed(1)}s` },
      seed: 0,
    };
  },
};
