//! Pending entries in random order.

use redelay_fixture::Server;

use crate::keys::{ORDERED_LIST, TIMEOUT_SET};

/// Entries that a call stores: a server that shares its processor takes a moment for them.
const AT_A_TIME: usize = 10_000;

const FILL: &str = "local z, l, many, due = {}, {}, tonumber(ARGV[1]), tonumber(ARGV[2])
local last = math.min(ARGV[3] + ARGV[4], many) - 1
for i = tonumber(ARGV[3]), last do
    local n = (i * 7919 + 12345) % many
    local payload = string.format('%.0f', n)
    payload = string.rep('0', BYTES - #payload) .. payload
    local entry = '\\8' .. struct.pack('>I4I4', 7, n) .. struct.pack('<L', #payload) .. payload
    z[#z + 1] = n < due and 1000000000 + n or 400000000000000 + n
    z[#z + 1] = entry
    l[#l + 1] = entry
    if #l == 1000 or i == last then
        redis.call('ZADD', KEYS[1], unpack(z))
        redis.call('RPUSH', KEYS[2], unpack(l))
        z, l = {}, {}
    end
end";

/// Stores entries of the string codec in random order. The payload of each is its number; those below `due`
/// are due, in the order of their numbers.
pub fn fill_at_random(server: &Server, many: usize, due: usize) {
    fill_with_lengths(server, many, due, "0");
}

/// The same, with zeros in front of the numbers. `bytes` is the least length of the payload `n`, in Lua,
/// which knows `due`, too.
pub fn fill_with_lengths(server: &Server, many: usize, due: usize, bytes: &str) {
    let fill = FILL.replace("BYTES", &format!("({bytes})"));
    for first in (0..many).step_by(AT_A_TIME) {
        let [many, due, first, most] = [many, due, first, AT_A_TIME].map(|number| number.to_string());
        server.cmd(["EVAL", &fill, "2", TIMEOUT_SET, ORDERED_LIST, &many, &due, &first, &most]);
    }
}
