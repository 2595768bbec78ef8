// Loaded before a gateway: what it draws by chance follows a seed.
import { createSeededRandom } from "../../../src/testing/random.ts";

Math.random = createSeededRandom(Number(process.env["DRAWN_SEED"]));
