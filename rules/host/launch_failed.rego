# METADATA
# title: The launcher or scheduler did not start the job, or ended it
# description: >-
#   mpirun, mpiexec or Slurm refused the way in which the job was started, could not start ranks on a host, or ended the
#   job for a reason of its own: a time limit, another job, a node that failed. Communication is not at fault, and what
#   ranks report afterwards is a consequence.
# related_resources:
#   - ref: https://docs.open-mpi.org/en/v5.0.x/launching-apps/index.html
#     description: How Open MPI starts ranks, by ssh and under a scheduler
#   - {ref: https://slurm.schedmd.com/mpi_guide.html, description: Which PMI each MPI needs under Slurm}
# custom:
#   severity: critical
#   confidence: confirmed
#   cause: app-failure
#   areas: [job]
#   texts_only: true
#   needs: [job-told]
#   remedies: [correct-launch, open-firewall, fix-application, other]
#   explains: [no-agent > env-misconfig]
#   since: "0.4"
package gpudoctor.rules.launch_failed
