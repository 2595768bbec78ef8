// Preloaded into a gateway: its random numbers follow a seed.
import { random } from "../../../src/testing/random.ts";

Math.random = random(Number(process.env.DRAWN_SEED));
