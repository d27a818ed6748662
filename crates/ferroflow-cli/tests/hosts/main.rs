//! Jobs over several hosts, which need programs and rights that a machine may lack. Hosts are
//! network namespaces, or this host by ssh or mpirun. Where something is missing, the tests are
//! skipped with the reason.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod doctor;
mod elastic;
mod example;
mod faults;
mod gpu_libraries;
mod kubernetes;
mod launchers;
mod mpi;
mod namespaces;
mod network;
mod slurm;
mod sshd;
mod users;

use ferroflow_testing::needs::{
    ANOTHER_USER, HOST_NAME, MOUNTS, MPICH, MPIRUN, NETWORK_NAMESPACES, SLURM, SLURM_PMIX, SSHD,
    TERMINAL, TORCHRUN,
};
use ferroflow_testing::{trial, trials};

fn main() {
    if example::is_rank() {
        return example::run();
    }
    trials::run(&[
        trial!(faults::every_call_ends_after_a_task_is_cut_off, NETWORK_NAMESPACES),
        trial!(faults::every_call_ends_when_only_the_master_reaches_both, NETWORK_NAMESPACES),
        trial!(namespaces::a_cluster_works_together_on_several_hosts, NETWORK_NAMESPACES),
        trial!(namespaces::ranks_of_several_hosts_reduce_over_tls, NETWORK_NAMESPACES),
        trial!(namespaces::ranks_get_an_address_that_other_hosts_reach, NETWORK_NAMESPACES),
        trial!(network::a_task_that_restarts_at_another_address_is_found_again, NETWORK_NAMESPACES),
        trial!(
            network::a_session_finds_a_task_at_its_new_address_without_a_failed_step,
            NETWORK_NAMESPACES
        ),
        trial!(network::a_slow_link_is_not_taken_for_a_dead_task, network::SLOW_LINKS),
        trial!(users::another_user_of_this_host_is_not_let_in, ANOTHER_USER),
        trial!(launchers::ranks_that_mpirun_starts_find_each_other, MPIRUN),
        trial!(namespaces::our_launcher_runs_the_example_on_two_hosts, NETWORK_NAMESPACES),
        trial!(mpi::open_mpi_runs_the_example_on_two_hosts, MPIRUN, NETWORK_NAMESPACES),
        trial!(mpi::mpich_runs_the_example_on_two_hosts, MPICH, NETWORK_NAMESPACES),
        trial!(mpi::ranks_choose_the_interface_that_reaches_the_others, MPICH, NETWORK_NAMESPACES),
        trial!(slurm::srun_runs_the_example_on_two_nodes_by_pmi2, SLURM, NETWORK_NAMESPACES),
        trial!(
            slurm::srun_runs_the_example_on_two_nodes_by_pmix,
            SLURM,
            SLURM_PMIX,
            NETWORK_NAMESPACES
        ),
        trial!(kubernetes::a_cluster_goes_on_when_any_of_its_pods_is_replaced, NETWORK_NAMESPACES),
        trial!(kubernetes::an_elastic_job_grows_and_shrinks_with_its_pods, NETWORK_NAMESPACES),
        trial!(kubernetes::an_all_reduce_job_starts_again_after_a_rank_is_lost, NETWORK_NAMESPACES),
        trial!(gpu_libraries::an_old_driver_is_named_with_its_version, gpu_libraries::GCC),
        trial!(gpu_libraries::a_missing_function_of_the_driver_is_named, gpu_libraries::GCC),
        trial!(
            gpu_libraries::a_driver_that_does_not_start_is_reported_by_training,
            gpu_libraries::GCC
        ),
        trial!(gpu_libraries::a_machine_whose_gpus_are_hidden_says_so, gpu_libraries::GCC),
        trial!(
            gpu_libraries::a_driver_without_its_compiler_names_what_is_missing,
            gpu_libraries::GCC
        ),
        trial!(doctor::a_healthy_host_has_no_fault),
        trial!(doctor::faults_of_a_host_are_found, MOUNTS),
        trial!(doctor::faults_of_credentials_are_found),
        trial!(doctor::faults_of_tasks_are_found),
        trial!(doctor::faults_of_a_network_are_found, NETWORK_NAMESPACES),
        trial!(launchers::a_job_token_passes_through_a_terminal_unseen, TERMINAL),
        trial!(launchers::ssh_runs_the_example, SSHD),
        trial!(launchers::torchrun_runs_the_example, TORCHRUN),
        trial!(launchers::ssh_starts_ranks_and_returns_their_exit_code, SSHD),
        trial!(launchers::ranks_that_ssh_started_end_with_the_launcher, SSHD),
        trial!(elastic::ranks_go_on_as_slots_come_and_go, HOST_NAME),
    ]);
}
