# METADATA
# title: A limit of open files, processes or segments was reached
# description: >-
#   Each connection, each shared memory object and each data loader takes file
#   descriptors and threads. Where RLIMIT_NOFILE, the number of processes, a
#   control group's pids.max or the kernel's limit of System V segments is
#   reached, ranks fail while they connect or start workers.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies
#     description: The sharing by file descriptor, and what to do when they run out
#   - ref: https://man7.org/linux/man-pages/man2/getrlimit.2.html
#     description: RLIMIT_NOFILE and RLIMIT_NPROC
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - job-told
#   remedies: [raise-process-limits, other]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.process_limits

import data.gpudoctor.lib.logs

# Programs say themselves which limit they reached: the verdicts of these messages are
# rows of the catalogue.

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
