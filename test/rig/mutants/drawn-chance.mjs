// Loaded before a gateway: what it draws by chance follows a seed.
import { random } from "../../../src/testing/random.ts";

Math.random = random(Number(process.env.DRAWN_SEED));
