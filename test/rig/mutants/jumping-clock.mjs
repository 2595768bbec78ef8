// Loaded before a gateway: its wall clock is off by what a file says. With a fault planted, what should be monotonic goes by the
// wall too.
import { readFileSync } from "node:fs";

const { CLOCK_FILE: file, CLOCK_PLANT: plant } = process.env;
const Real = Date;
let off = 0;
const look = () => {
  try {
    off = Number(readFileSync(file, "utf8")) || 0;
  } catch {
    // There is none yet.
  }
};
look();
setInterval(look, 20).unref();

globalThis.Date = class Date extends Real {
  constructor(...of) {
    if (of.length === 0) super(Real.now() + off);
    else super(...of);
  }
  static now() {
    return Real.now() + off;
  }
};

if (plant === "wall") {
  const from = Real.now();
  performance.now = () => Real.now() + off - from;
}
